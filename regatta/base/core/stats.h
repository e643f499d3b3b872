// core/stats.h: the few statistics that a run is judged by, and hashes that are the same on every
// machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace regatta {

// The middle value, or the mean of the two middle ones; 0 of nothing.
double median(std::vector<double> values);

// The place, from 0, of a quantile among `count` >= 1 sorted values, 0 <= `share` <= 1: the first
// place up to which there are at least that share of all. Source: definition 1 of Hyndman and Fan,
// "Sample quantiles in statistical packages", The American Statistician 50(4), 1996.
std::size_t quantile_place(std::size_t count, double share);

// The value at that place; 0 of nothing. Half of an even count is the lower of the two middle ones.
double quantile(std::vector<double> values, double share);

// Ranks from 1, equal values share the mean of their places: {5, 3, 5} -> {2.5, 1, 2.5}.
std::vector<double> average_ranks(const std::vector<double>& values);

// Spearman's rank correlation: Pearson's correlation of the average ranks, -1 to 1. nullopt when
// the lengths differ, below 3 pairs, or when one side is constant. Source: Spearman, American
// Journal of Psychology 15, 1904; ties as in Kendall, Rank Correlation Methods, section 3.8.
std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b);

// A number that looks drawn for each number, the same one each time. SplitMix64:
// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.

inline constexpr std::uint64_t kSplitMixStep = 0x9e3779b97f4a7c15U;

// Its last part: 0 stays 0.
constexpr std::uint64_t splitmix_finish(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

constexpr std::uint64_t splitmix(std::uint64_t value) {
  return splitmix_finish(value + kSplitMixStep);
}

// FNV-1a of the bytes of `text`, and of native 32-bit words without an incomplete last one; `hash`
// continues an earlier one. Finds torn and swapped data, no attack. Files and messages hold these
// values. Source: Fowler, Noll, Vo, Eastlake and Hansen, RFC 9923.

inline constexpr std::uint64_t kFnv1aBasis = 0xcbf29ce484222325U;
inline constexpr std::uint32_t kFnv1aBasis32 = 0x811c9dc5U;

constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t hash = kFnv1aBasis) {
  for (const char letter : text)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  return hash;
}

constexpr std::uint32_t fnv1a_32(std::string_view text, std::uint32_t hash = kFnv1aBasis32) {
  for (const char letter : text)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x01000193U;
  return hash;
}

std::uint64_t fnv1a_words(std::span<const std::byte> bytes, std::uint64_t hash = kFnv1aBasis);

}  // namespace regatta
