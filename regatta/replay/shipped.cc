#include "regatta/replay/shipped.h"

namespace regatta::replay {
namespace {

constexpr std::string_view kKorthikanti =
    "# Korthikanti et al., 2022, table 5: time of a step on DGX A100 80 GB, fp16, sequences of "
    "2048\n"
    "model,layers,hidden,heads,tp,pp,dp,gpus,gbs,mbs,interleave,recompute,iter_s\n"
    "22B,48,6144,64,8,1,1,8,4,4,1,full,1.42\n"
    "22B,48,6144,64,8,1,1,8,4,4,1,selective+SP,1.10\n"
    "175B,96,12288,96,8,8,1,64,64,1,3,full,18.13\n"
    "175B,96,12288,96,8,8,1,64,64,1,3,selective+SP,13.75\n"
    "530B,105,20480,128,8,35,1,280,280,1,3,full,49.05\n"
    "530B,105,20480,128,8,35,1,280,280,1,3,selective+SP,37.83\n"
    "1T,128,25600,160,8,64,1,512,512,1,1,full,94.42\n"
    "1T,128,25600,160,8,64,1,512,512,1,1,selective+SP,71.49\n";

}  // namespace

std::vector<ShippedSet> shipped_sets() {
  return {{"korthikanti_table5", kKorthikanti}};
}

}  // namespace regatta::replay
