// The settings of an optimizer's groups of parameters, of which DCP has each as a value of its own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/ckpt/named_tensors.h"
#include "lib/ckpt/torch/dcp_names.h"
#include "lib/ckpt/torch/optimizer_settings.h"
#include "lib/ckpt/torch/pickle.h"

namespace gxp {

// The groups in the making, in the order in which they occur.
class DcpGroups {
 public:
  void add(const DcpSetting& setting, PickleValue value);

  // Puts groups and settings into `result`, unless gxp has written it. `weights`: their names, by
  // what the optimizer calls them.
  void finish(const std::map<std::string, std::string>& weights, NamedTensors& result);

 private:
  struct Group {
    decltype(ParameterGroup::settings) settings;
    std::vector<std::string> params;
  };
  // 10 comes after 9.
  struct ByNumber {
    bool operator()(const std::string& a, const std::string& b) const;
  };

  std::map<std::string, Group, ByNumber> groups_;
  OptimizerGroups settings_;
  std::vector<std::string> lost_;
};

}  // namespace gxp
