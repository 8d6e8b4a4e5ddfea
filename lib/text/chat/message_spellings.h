// Messages and tools in spellings that chat templates do not know, as those that they do.
#pragma once

#include <string>

#include "lib/text/jinja/value.h"

namespace gxp {

// Of one conversation, whose messages it gets in order.
class MessageSpellings {
 public:
  // With role and content; what needs no change stays as it is.
  //   from and value (ShareGPT)     human, user; gpt, assistant, chatgpt, bard, bing, model; system;
  //                                 tool, observation; function_call
  //   the role function_call        an assistant's with tool_calls; its content is the JSON of a call,
  //                                 or of a list of them
  //   function_call (OpenAI)        one of tool_calls
  //   function, observation         roles of a tool, after either of these two
  //   parts input_text, output_text text
  // A call's arguments in JSON become an object. `where` begins the messages: "read FILE, line 3:
  // message 2". kCorrupt: it has members of both spellings, an unknown role, or a call without a name
  // or with arguments that are no object.
  JinjaDict known(const JinjaDict& message, const std::string& where);

  // An example's tools, a list or its JSON, or else its functions (OpenAI), each as a tool; bare
  // functions are tools where messages have been in ShareGPT's spelling. Empty: there are none.
  // kCorrupt: these are no lists, or there are both.
  [[nodiscard]] JinjaList known_tools(const JinjaDict& object, const std::string& where) const;

 private:
  bool is_share_gpt_ = false;
  bool has_function_calls_ = false;
};

}  // namespace gxp
