// The scalars of a stack by name: one table says where each is kept and what it means.
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "regatta/model/cost/software_stack.h"

namespace regatta::cost {
namespace {

struct Place {
  double Calibration::*number = nullptr;
  Seconds Calibration::*time = nullptr;
  double StackTraits::*trait = nullptr;
  Seconds StackTraits::*trait_time = nullptr;
};

struct Row {
  std::string_view key;
  std::string_view meaning;
  Place place;
};

// By StackScalar.
constexpr std::array<Row, kStackScalarCount> kRows = {{
    {"matrix_efficiency",
     "share of the matrix peak that full waves of deep products reach",
     {.number = &Calibration::matrix_efficiency}},
    {"tile_depth",
     "elements of k that beginning and ending a tile of a product are worth",
     {.number = &Calibration::tile_depth}},
    {"memory_efficiency",
     "share of the memory bandwidth that passes over large tensors reach",
     {.number = &Calibration::memory_efficiency}},
    {"launch_s", "host time of one kernel of a block", {.time = &Calibration::launch}},
    {"link_efficiency",
     "share of the bandwidth between devices that collectives reach",
     {.number = &Calibration::link_efficiency}},
    {"network_efficiency",
     "share of the rate of NICs that collectives reach",
     {.number = &Calibration::network_efficiency}},
    {"collective_latency_s",
     "time of one small collective, between servers once more per doubling",
     {.time = &Calibration::collective_latency}},
    {"misalignment",
     "time of products added per halving of their alignment below 128 bytes",
     {.number = &Calibration::misalignment}},
    {"experts_sync_s",
     "wait of a block with experts until the host knows their tokens",
     {.trait_time = &StackTraits::experts_sync}},
    {"tp_overlap",
     "share of tensor-parallel communication that computation hides",
     {.trait = &StackTraits::tp_overlap}},
    {"pp_overlap",
     "share of pipeline communication that computation hides",
     {.trait = &StackTraits::pp_overlap}},
    {"dp_overlap",
     "share of data-parallel communication that computation hides",
     {.trait = &StackTraits::dp_overlap}},
    {"ep_overlap",
     "share of the exchange of tokens with experts that computation hides",
     {.trait = &StackTraits::ep_overlap}},
}};

const Row& row_of(StackScalar scalar) {
  return kRows[static_cast<std::size_t>(scalar)];
}

}  // namespace

std::array<StackScalar, kStackScalarCount> all_stack_scalars() {
  std::array<StackScalar, kStackScalarCount> all{};
  for (std::size_t i = 0; i < kStackScalarCount; ++i)
    all[i] = static_cast<StackScalar>(i);
  return all;
}

std::string to_string(StackScalar scalar) {
  return std::string(row_of(scalar).key);
}

std::string_view meaning_of(StackScalar scalar) {
  return row_of(scalar).meaning;
}

double scalar_of(const SoftwareStack& stack, StackScalar scalar) {
  const Place& place = row_of(scalar).place;
  if (place.number != nullptr) return stack.calibration.*place.number;
  if (place.time != nullptr) return (stack.calibration.*place.time).value;
  if (place.trait != nullptr) return stack.traits.*place.trait;
  return (stack.traits.*place.trait_time).value;
}

void set_scalar(SoftwareStack& stack, StackScalar scalar, double value) {
  const Place& place = row_of(scalar).place;
  if (place.number != nullptr)
    stack.calibration.*place.number = value;
  else if (place.time != nullptr)
    (stack.calibration.*place.time).value = value;
  else if (place.trait != nullptr)
    stack.traits.*place.trait = value;
  else
    (stack.traits.*place.trait_time).value = value;
}

StackCalibration calibration_of(const SoftwareStack& stack) {
  StackCalibration calibration;
  calibration.stack = stack.name;
  calibration.source = stack.fitted_on;
  calibration.dense = stack.own_dense;
  calibration.experts = stack.own_experts;
  for (const StackScalar scalar : all_stack_scalars())
    calibration.values[static_cast<std::size_t>(scalar)] = scalar_of(stack, scalar);
  return calibration;
}

SoftwareStack calibrated(SoftwareStack stack, const StackCalibration& calibration) {
  for (const StackScalar scalar : all_stack_scalars())
    set_scalar(stack, scalar, calibration.values[static_cast<std::size_t>(scalar)]);
  stack.own_dense = calibration.dense;
  stack.own_experts = calibration.experts;
  stack.fitted_on = calibration.source;
  return stack;
}

}  // namespace regatta::cost
