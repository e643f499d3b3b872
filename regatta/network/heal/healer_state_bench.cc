#include <string>

#include <benchmark/benchmark.h>

#include "regatta/network/heal/healer_state.h"

namespace regatta::heal {
namespace {

// As many links as `count` are held.
HealerState held_links(std::uint32_t count) {
  HealerState state;
  for (std::uint32_t link = 0; link < count; ++link)
    state.damper.held.push_back(
        {.fault = {Place::kLink, link, {}, Harm::kLoss}, .why = "3 of 3 probes lost"});
  return state;
}

// A step after which nothing is different.
void bm_update_unchanged_state(benchmark::State& state) {
  auto text = SharedText::create();
  StateWriter writer(*text);
  const HealerState held = held_links(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state)
    benchmark::DoNotOptimize(writer.update(held).has_value());
}
BENCHMARK(bm_update_unchanged_state)->Arg(1)->Arg(64);

void bm_state_text(benchmark::State& state) {
  const HealerState held = held_links(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state)
    benchmark::DoNotOptimize(state_text(held));
}
BENCHMARK(bm_state_text)->Arg(1)->Arg(64);

}  // namespace
}  // namespace regatta::heal
