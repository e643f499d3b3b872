// topo/internal/scale_up_yaml.h: the scale-up domains of a cluster file.
#pragma once

#include "regatta/base/core/yaml_map.h"
#include "regatta/model/topo/cluster.h"

namespace regatta::topo {

// The key `scale_up` of a server type.
void read_scale_up(const YamlMap& server_type, ServerType& type);

// Whether the servers of each type fill whole domains, and no leaf divides one. A domain that a
// preset gives, and no key, is as large as the servers of the file use of it.
void fit_domains(const YamlMap& root, Cluster& cluster);

}  // namespace regatta::topo
