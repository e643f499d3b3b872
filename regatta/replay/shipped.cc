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

constexpr std::string_view kMegatron =
    "# Narayanan et al., SC'21, table 1: time of a step from the TFLOP/s that it states, by the\n"
    "# operations of its equation 3, on DGX A100 80 GB, fp16, sequences of 2048\n"
    "params_b,heads,hidden,layers,tp,pp,gpus,gbs,dp,tflops_gpu,step_s_derived\n"
    "1.7,24,2304,24,1,1,32,512,32,137,3.528\n"
    "3.6,32,3072,30,2,1,64,512,32,138,3.697\n"
    "7.5,32,4096,36,4,1,128,512,32,142,3.696\n"
    "18.4,48,6144,40,8,1,256,1024,32,135,9.399\n"
    "39.1,64,8192,48,8,2,512,1536,32,138,14.453\n"
    "76.1,80,10240,60,8,4,1024,1792,32,140,16.058\n"
    "145.6,96,12288,80,8,8,1536,2304,24,148,24.817\n"
    "310.1,128,16384,96,8,16,1920,2160,15,155,37.614\n"
    "529.6,128,20480,105,8,35,2520,2520,9,163,54.085\n"
    "1008.0,160,25600,128,8,64,3072,3072,6,163,102.630\n";

}  // namespace

std::vector<ShippedSet> shipped_sets() {
  return {{"korthikanti_table5", kKorthikanti}, {"megatron_sc21_table1", kMegatron}};
}

}  // namespace regatta::replay
