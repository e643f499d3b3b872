// collective/algorithms.h: every algorithm that writes the schedule of a collective, and the choice
// among them. Each header below has its steps, its bytes on the wire and its source.
#pragma once

#include "regatta/model/collective/internal/all_to_all.h"      // IWYU pragma: export
#include "regatta/model/collective/internal/bruck.h"           // IWYU pragma: export
#include "regatta/model/collective/internal/choose.h"          // IWYU pragma: export
#include "regatta/model/collective/internal/chunk_window.h"    // IWYU pragma: export
#include "regatta/model/collective/internal/direct.h"          // IWYU pragma: export
#include "regatta/model/collective/internal/double_tree.h"     // IWYU pragma: export
#include "regatta/model/collective/internal/gather_all.h"      // IWYU pragma: export
#include "regatta/model/collective/internal/group_position.h"  // IWYU pragma: export
#include "regatta/model/collective/internal/halving.h"         // IWYU pragma: export
#include "regatta/model/collective/internal/hierarchical.h"    // IWYU pragma: export
#include "regatta/model/collective/internal/ordered.h"         // IWYU pragma: export
#include "regatta/model/collective/internal/rail.h"            // IWYU pragma: export
#include "regatta/model/collective/internal/rank_parts.h"      // IWYU pragma: export
#include "regatta/model/collective/internal/ring.h"            // IWYU pragma: export
#include "regatta/model/collective/internal/rooted.h"          // IWYU pragma: export
#include "regatta/model/collective/internal/varying.h"         // IWYU pragma: export
