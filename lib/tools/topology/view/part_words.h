// A part of a host in a few words for people: what is known, and nothing else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gxp {

struct NumaNodeInfo;
struct Part;
struct PcieLink;
struct PortInfo;

// "PCIe 16 GT/s x16", of one that could do more with "of 32 GT/s x16"; "" if nothing is known.
std::string words_of(const PcieLink& link);
std::string words_of(const NumaNodeInfo& node);
std::string words_of(const PortInfo& port);  // "mlx5_0 (ib0) 200 Gbit/s InfiniBand"
// A device: its model or ids, and what its kind has to say; not its link.
std::string words_of_device(const Part& part);

// "GPU0-GPU7", "GPU0, GPU2": names in their order, those that count on from each other as one.
std::string words_of_range(const std::vector<std::string>& names);
// Joins the words that are not empty.
std::string join_words(std::vector<std::string> words, std::string_view between = ", ");

}  // namespace gxp
