#include "regatta/planning/replay/embedded_sets.h"

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

// Megatron-LM as the baseline of MegaScale (Jiang et al., NSDI 2024, table 2) on A100, batches of
// 768 and 6144; Megatron-Turing NLG (Smith et al., 2022, section 2.4) with Megatron-DeepSpeed;
// Llama 3 405B (Grattafiori et al., 2024, table 4), whose schedule is taken as 4 parts a stage;
// Megatron Bridge 25.11 and 26.02 (docs/performance-summary-archive.md of
// github.com/NVIDIA-NeMo/Megatron-Bridge), the largest release of each row.
constexpr std::string_view kAtScale =
    "model,heads,seq,vocab,server,gpus,tp,pp,cp,zero,vp,recompute,sp,mbs,gbs,precision,stack,"
    "step_s,tokens_s_gpu,tflops_gpu\n"
    "gpt3-175b,128,2048,64000,dgx-a100-80g,256,8,8,1,1,6,,,1,768,bf16,megatron-lm-2022,40.0,,\n"
    "gpt3-175b,128,2048,64000,dgx-a100-80g,512,8,8,1,1,6,,,1,768,bf16,megatron-lm-2022,21.2,,\n"
    "gpt3-175b,128,2048,64000,dgx-a100-80g,768,8,8,1,1,6,,,1,768,bf16,megatron-lm-2022,15.2,,\n"
    "gpt3-175b,128,2048,64000,dgx-a100-80g,1024,8,8,1,1,6,,,1,768,bf16,megatron-lm-2022,11.9,,\n"
    "gpt3-175b,128,2048,64000,dgx-a100-80g,3072,8,8,1,1,6,,,1,6144,bf16,megatron-lm-2022,29.02,,\n"
    "gpt3-175b,128,2048,64000,dgx-a100-80g,6144,8,8,1,1,6,,,1,6144,bf16,megatron-lm-2022,14.78,,\n"
    "gpt3-175b,128,2048,64000,dgx-a100-80g,8192,8,8,1,1,6,,,1,6144,bf16,megatron-lm-2022,12.24,,\n"
    "gpt3-175b,128,2048,64000,dgx-a100-80g,12288,8,8,1,1,6,,,1,6144,bf16,megatron-lm-2022,8.57,,\n"
    "megatron-529.6b,,2048,,dgx-a100-80g,2240,8,35,1,,1,full,no,1,1920,bf16,megatron-deepspeed-"
    "bf16,60.1,,\n"
    "megatron-529.6b,,2048,,dgx-a100-80g,2800,8,35,1,,1,full,no,1,1920,bf16,megatron-deepspeed-"
    "bf16,50.2,,\n"
    "megatron-529.6b,,2048,,dgx-a100-80g,3360,8,35,1,,1,full,no,1,1920,bf16,megatron-deepspeed-"
    "bf16,44.4,,\n"
    "llama3-405b,,,,dgx-h100,8192,8,16,1,2,4,,,1,2048,bf16,llama3-2024,,,430\n"
    "llama3-405b,,,,dgx-h100,16384,8,16,1,2,4,,,1,2048,bf16,llama3-2024,,,400\n"
    "llama3-8b,,,,dgx-h100,8,1,1,1,3,,,,1,128,fp8,megatron-bridge-dense,,14451,\n"
    "llama3-70b,,,,dgx-h100,64,4,8,1,1,5,,,1,256,fp8,megatron-bridge-dense,,1621,\n"
    "llama3-405b,,,,dgx-h100,1024,8,8,2,1,8,,,1,512,fp8,megatron-bridge-dense,,292,\n"
    "llama3-405b,,,,dgx-h100,1024,8,8,2,1,8,,,1,1536,fp8,megatron-bridge-dense,,311,\n"
    "llama3-8b,,,,dgx-b200,8,1,1,1,1,,,,2,128,fp8,megatron-bridge-dense,,30624,\n"
    "llama3-405b,,,,dgx-b200,128,4,8,2,1,8,,,1,64,fp8,megatron-bridge-dense,,661,\n";

// Mixtures of experts, their tokens balanced by force: DeepSeek-V3 as its authors trained it (2024,
// sections 3.1 and 4.2: 180 thousand hours of H800 a trillion tokens); NeMo AutoModel
// (docs/performance-summary.md of github.com/NVIDIA-NeMo/Automodel, 2025): FSDP and DeepEP;
// Megatron Bridge 25.09 to 26.02 (as above), each the fastest release of its row, with the
// dispatcher and the recomputation of its recipe.
constexpr std::string_view kExperts =
    "model,server,gpus,tp,pp,ep,etp,zero,vp,schedule,recompute,mbs,gbs,precision,stack,"
    "tokens_s_gpu,capacity\n"
    "deepseek-v3,h800-8,2048,1,16,64,,1,,dualpipe,pointwise,1,15360,fp8,megatron-bridge,1543,\n"
    "deepseek-v3,dgx-h100,1024,1,4,64,,3,8,,,1,8192,bf16,automodel,865,\n"
    "deepseek-v3,dgx-h100,256,1,4,64,,3,8,,,1,512,bf16,automodel,1002,\n"
    "kimi-k2,dgx-h100,256,1,8,32,,3,4,,,1,512,bf16,automodel,924,\n"
    "qwen3-30b-a3b,dgx-h100,8,1,1,8,,3,,,,4,512,bf16,automodel,12040,\n"
    "deepseek-v3,dgx-h100,1024,2,8,64,1,1,4,,pointwise,1,8192,fp8,megatron-bridge,1297,\n"
    "qwen3-30b-a3b,dgx-h100,16,1,2,8,,1,24,,,2,512,fp8,megatron-bridge-alltoall,10494,1\n"
    "deepseek-v3,dgx-b200,256,1,16,8,,1,,,pointwise,1,4096,fp8,megatron-bridge,2689,\n"
    "qwen3-30b-a3b,dgx-b200,8,1,1,8,,1,,,,1,512,fp8,megatron-bridge-alltoall,18066,1\n"
    "qwen3-235b-a22b,dgx-b200,64,1,8,8,,1,2,,,1,1024,fp8,megatron-bridge-alltoall,4104,\n"
    "qwen3-235b-a22b,dgx-b200,256,1,8,8,,1,,,,1,8192,fp8,megatron-bridge-alltoall,3805,\n";

}  // namespace

std::vector<EmbeddedSet> embedded_sets() {
  return {{"korthikanti_table5", kKorthikanti},
          {"megatron_sc21_table1", kMegatron},
          {"at_scale", kAtScale},
          {"experts", kExperts}};
}

}  // namespace regatta::replay
