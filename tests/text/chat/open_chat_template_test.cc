#include <fstream>

#include "lib/text/chat/chat_template.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"
#include "tests/text/chat/chat_samples.h"

namespace gxp {
namespace {

class Directory {
 public:
  Directory& add(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name) << text;
    return *this;
  }
  [[nodiscard]] std::string rendering(const std::string& name = "default") const {
    return open_chat_template(directory_.path(), name).render(JinjaList{}, false).text;
  }
  [[nodiscard]] Caught error(const std::string& name = "default") const {
    return error_of([&] { static_cast<void>(rendering(name)); });
  }

 private:
  TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("a directory's own file of the template wins", "[text]") {
  Directory directory;
  CHECK(directory.error().kind == ErrorKind::kConfig);
  directory.add(
      "tokenizer_config.json",
      R"({"chat_template": "from the config", "model_max_length": 1000000000000000019884624838656})");
  CHECK(directory.rendering() == "from the config");
  CHECK(directory.error("tool_use").kind == ErrorKind::kConfig);
  directory.add("chat_template.jinja", "from its own file\n");
  CHECK(directory.rendering() == "from its own file");
}

TEST_CASE("one of several templates has a name", "[text]") {
  Directory directory;
  directory.add(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "default", "template": "a"}, {"name": "rag", "template": "b"}]})");
  CHECK(directory.rendering() == "a");
  CHECK(directory.rendering("rag") == "b");
  CHECK(directory.error("other").says("the file has default, rag"));
}

TEST_CASE("special tokens are variables, wherever their file has them", "[text]") {
  const std::string source =
      R"("chat_template": "{{ bos_token }}|{{ eos_token }}|{{ image_token }}|{{ add_bos_token }}")";
  const std::string tokens =
      R"("bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}, "image_token": "<i>", "add_bos_token": true)";
  Directory directory;
  directory.add("tokenizer_config.json", "{" + source + "," + tokens + "}");
  CHECK(directory.rendering() == "<s>|</s>|<i>|");
  directory.add("special_tokens_map.json", R"({"bos_token": {"content": "<b>"}})");
  CHECK(directory.rendering() == "<b>|</s>|<i>|");
  directory.add("tokenizer_config.json",
                "{" + source + "," + tokens + R"(, "added_tokens_decoder": {}})");
  CHECK(directory.rendering() == "<s>|</s>|<i>|");
}

TEST_CASE("a token that only a class of transformers knows is an error", "[text]") {
  const std::string source = R"({"chat_template": "{{ bos_token }}", "tokenizer_class": )";
  Directory directory;
  CHECK(directory.add("tokenizer_config.json", source + R"("LlamaTokenizer"})")
            .error()
            .says("it uses bos_token"));
  CHECK(directory.add("tokenizer_config.json", source + R"("LlamaTokenizer", "bos_token": null})")
            .rendering()
            .empty());
  CHECK(directory.add("tokenizer_config.json", source + R"("PreTrainedTokenizerFast"})")
            .rendering()
            .empty());
}

TEST_CASE("a template's digest is of the source, the tokens and the day that it asks for",
          "[text]") {
  const auto digest = [](const std::string& source, const std::string& token, std::time_t now) {
    JinjaDict tokens;
    tokens.set("eos_token", token);
    return ChatTemplate(source, "name", tokens, now).digest();
  };
  const std::time_t week = 7 * 86400;
  CHECK(digest("a", "b", 0) == digest("a", "b", week));
  CHECK(digest("a", "b", 0) != digest("a", "c", 0));
  CHECK(digest("a", "b", 0) != digest("c", "b", 0));
  CHECK(digest("{{ strftime_now('%Y') }}", "b", 0) !=
        digest("{{ strftime_now('%Y') }}", "b", week));
  const std::string source = "{{ strftime_now('%d %b %Y %-d') }}";
  CHECK(
      ChatTemplate(source, "name", {}, 3 * week).render(JinjaList{}, false).text.starts_with("2"));
}

}  // namespace gxp
