// replay/internal/determined_scalars.h: which unknowns a few measurements determine, when each
// unknown is known to a width before them (ridge regression as Bayes has it: Hoerl and Kennard,
// Technometrics 12, 1970).
#pragma once

#include <cstddef>
#include <vector>

namespace regatta::replay {

// sensitivity[i][k]: how measurement i grows with unknown k, where each is 1 wide; `noise`: the
// width of a measurement. The unknowns that the measurements determine, in ascending order: taken
// one by one, each time the one whose variance falls most, as long as the variance of each that was
// taken, with them all unknown, is less than half of what it was. An unknown that was not taken is
// one that the measurements say nothing of, or cannot tell from those that were.
std::vector<std::size_t> determined(const std::vector<std::vector<double>>& sensitivity,
                                    std::size_t unknowns, double noise);

}  // namespace regatta::replay
