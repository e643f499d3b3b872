// replay/internal/fit_coordinate.h: a scalar of a stack as a fit sees it: a logarithm, within the
// limits of hardware, known before any run to a width.
#pragma once

#include "regatta/model/cost/software_stack.h"

namespace regatta::replay {

struct FitCoordinate {
  cost::StackScalar scalar = cost::StackScalar::kMatrixEfficiency;
  // Limits of exp(coordinate), which is the scalar, the scalar and `added`, or 1 less the scalar.
  double least = 0;
  double most = 0;
  double width = 0;  // a standard deviation of the coordinate
  double added = 0;  // so that a scalar of 0 has a logarithm
  bool is_rest = false;
};

FitCoordinate coordinate_of(cost::StackScalar scalar);
// The coordinate at the stack's value, or at the nearest limit.
double coordinate_value(const FitCoordinate& coordinate, const cost::SoftwareStack& stack);
// Outside its range it counts as the end of the range.
void apply(const FitCoordinate& coordinate, double value, cost::SoftwareStack& stack);
// How far it is outside; 0 inside.
double excess(const FitCoordinate& coordinate, double value);

}  // namespace regatta::replay
