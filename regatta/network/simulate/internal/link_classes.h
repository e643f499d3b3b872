// simulate/internal/link_classes.h: links with equal traffic, such as the uplinks of a leaf that
// sprays its packets: one of them represents all, for they are full at the same time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regatta/network/fabric/traffic.h"

namespace regatta::simulate {

class LinkClasses {
 public:
  explicit LinkClasses(const fabric::Links& links);

  // A path crosses these links with `amounts` of each byte.
  void add(std::span<const std::uint32_t> links, std::span<const double> amounts);
  // A link has another capacity from `time` on.
  void add_change(std::uint32_t link, double time, double capacity);

  // Per link: the first link of its class: all calls named them with the same values (but for
  // rounding), and their capacities are equal. A link without traffic represents itself.
  std::vector<std::uint32_t> link_representatives() const;

 private:
  struct Mark {
    std::uint64_t one = 0;
    std::uint64_t two = 0;
    friend auto operator<=>(const Mark&, const Mark&) = default;
  };
  void mark(std::uint32_t link, std::uint64_t call, double value);

  std::vector<Mark> marks_;  // per link: all calls that named it, as hashes of 128 bits together
  std::vector<bool> is_crossed_;
  std::uint64_t calls_ = 0;
};

}  // namespace regatta::simulate
