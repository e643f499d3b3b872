// All nodes in the order of the network, kept new by the event stream.
import { useMemo } from "react";
import { useQuery } from "../api/query";
import type { ClusterNode, List } from "../api/types";
import { nodes as knownNodes, useVersion } from "./collections";

const collator = new Intl.Collator("en", { numeric: true });

export function useNodes() {
  const reply = useQuery<List<ClusterNode>>("/v1/nodes");
  const version = useVersion(knownNodes);
  return useMemo(() => {
    for (const node of reply.data?.items ?? []) knownNodes.put(node);
    const all = [...knownNodes.items.values()].sort(
      (a, b) => a.group - b.group || a.leaf - b.leaf || collator.compare(a.name, b.name),
    );
    return { all, problem: reply.problem, isLoading: reply.isLoading && all.length === 0 };
  }, [reply.data, reply.problem, reply.isLoading, version]);
}
