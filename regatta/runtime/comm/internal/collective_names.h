// comm/internal/collective_names.h: lets comm use the nouns of collective unqualified. A
// communicator speaks in data types, calls and schedules; module collective owns them.
#pragma once

namespace regatta::collective {}

namespace regatta::comm {
using namespace collective;  // NOLINT(google-build-using-namespace): the reason is above
}  // namespace regatta::comm
