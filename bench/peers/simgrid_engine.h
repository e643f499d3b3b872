// bench/peers/simgrid_engine.h: SimGrid as the comparisons use it: links shared max-min fair (model
// CM02), what goes one way costs nothing on the other, and no messages but errors.
#pragma once

#include <array>
#include <string>

#include <simgrid/s4u.hpp>

namespace regatta::peers {

// One to a process: SimGrid has one engine, once.
class SimgridEngine {
 public:
  SimgridEngine() {
    simgrid::s4u::Engine::set_config("network/model:CM02");
    simgrid::s4u::Engine::set_config("network/crosstraffic:0");
  }
  void run() { engine_.run(); }

 private:
  std::array<std::string, 2> words_ = {"regatta", "--log=root.thres:error"};
  std::array<char*, 3> arguments_ = {words_[0].data(), words_[1].data(), nullptr};
  int count_ = 2;
  simgrid::s4u::Engine engine_{&count_, arguments_.data()};
};

}  // namespace regatta::peers
