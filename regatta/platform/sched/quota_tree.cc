#include "regatta/platform/sched/quota_tree.h"

#include <cstddef>

namespace regatta::sched {

ResourceAmounts& ResourceAmounts::operator+=(const ResourceAmounts& other) {
  for (std::size_t i = 0; i < of.size(); ++i)
    of[i] += other.of[i];
  return *this;
}

ResourceAmounts& ResourceAmounts::operator-=(const ResourceAmounts& other) {
  for (std::size_t i = 0; i < of.size(); ++i)
    of[i] -= other.of[i];
  return *this;
}

}  // namespace regatta::sched
