#include "regatta/network/simulate/internal/link_classes.h"

#include <bit>
#include <map>

#include "regatta/base/core/stats.h"

namespace regatta::simulate {
namespace {

constexpr unsigned kRoundedBits = 8;  // of the 52 of a fraction: sums in another order are equal

std::uint64_t rounded(double value) {
  return (std::bit_cast<std::uint64_t>(value) + (1U << (kRoundedBits - 1))) >> kRoundedBits;
}

}  // namespace

LinkClasses::LinkClasses(const fabric::Links& links)
    : marks_(links.capacity.size()), is_crossed_(links.capacity.size(), false) {
  for (std::uint32_t link = 0; link < marks_.size(); ++link)
    mark(link, 0, links.capacity[link]);
}

void LinkClasses::mark(std::uint32_t link, std::uint64_t call, double value) {
  Mark& mark = marks_[link];
  mark.one = splitmix(mark.one ^ splitmix(call) ^ rounded(value));
  mark.two = splitmix(mark.two + splitmix(~call) + rounded(value));
}

void LinkClasses::add(std::span<const std::uint32_t> links, std::span<const double> amounts) {
  ++calls_;
  for (std::size_t i = 0; i < links.size(); ++i) {
    is_crossed_[links[i]] = true;
    mark(links[i], calls_, amounts[i]);
  }
}

void LinkClasses::add_change(std::uint32_t link, double time, double capacity) {
  // Not a call of its own: links that fail together change at the same time.
  mark(link, ~0ULL, time);
  mark(link, ~0ULL, capacity);
}

std::vector<std::uint32_t> LinkClasses::link_representatives() const {
  std::vector<std::uint32_t> first(marks_.size());
  std::map<Mark, std::uint32_t> firsts;
  for (std::uint32_t link = 0; link < marks_.size(); ++link)
    first[link] = is_crossed_[link] ? firsts.try_emplace(marks_[link], link).first->second : link;
  return first;
}

}  // namespace regatta::simulate
