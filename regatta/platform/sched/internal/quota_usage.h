// sched/internal/quota_usage.h: what each queue uses, and which limit stands in the way of more.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/platform/sched/internal/key_index.h"
#include "regatta/platform/sched/quota_tree.h"

namespace regatta::sched {

// A limit that a job would pass.
struct QuotaLimit {
  int queue = 0;
  bool is_of_user = false;
  Resource resource = Resource::kCompute;
  int device_type = -1;  // of QuotaTree::device_types(), where the limit is on devices of one type
  long long used = 0;
  long long limit = 0;
};

// The tree outlives it.
class QuotaUsage {
 public:
  explicit QuotaUsage(const QuotaTree& tree);

  // The number of a user's account in a leaf, for the functions below: ask for it once a job.
  int account(int leaf, std::string_view user);
  int leaf_of(int account) const;

  // Counts in the account's leaf, in all queues above it, and for the user in each.
  void add(int account, const ResourceAmounts& amounts);
  void remove(int account, const ResourceAmounts& amounts);
  const ResourceAmounts& of_queue(int queue) const;

  // The first limit, from the leaf upwards, that the account would pass with `amounts` more.
  std::optional<QuotaLimit> limit_passed(int account, const ResourceAmounts& amounts) const;
  bool admits(int account, const ResourceAmounts& amounts) const {
    return !limit_passed(account, amounts).has_value();
  }

 private:
  struct Account {
    int leaf = 0;
    int user = 0;
  };
  // The usage of each user in a queue that limits its users.
  struct UserSlots {
    std::vector<int> slot_of_user;  // -1: none yet
    std::vector<ResourceAmounts> used;
  };

  int user_slot(int queue, int user) const;

  const QuotaTree* tree_;
  std::vector<bool> limits_users_;     // by queue
  std::vector<ResourceAmounts> used_;  // by queue
  std::vector<UserSlots> users_;       // by queue
  std::vector<Account> accounts_;
  std::vector<std::string> user_names_;  // by user
  KeyIndex user_numbers_;
  KeyIndex account_numbers_;  // by leaf and user
};

// "queue a is at its limit of 64 devices of type h100", "user u has 6 of at most 8 devices in
// queue a"
std::string limit_text(const QuotaTree& tree, const QuotaLimit& limit, std::string_view user);

}  // namespace regatta::sched
