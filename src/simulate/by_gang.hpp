// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace glidepath::detail {

/// Waiting jobs by size of gang. Room only shrinks along a greedy fill, so that of the jobs of one
/// size only the first can be next: a fill looks at one head for each size.
template <class Queue>
class ByGang {
 public:
  explicit ByGang(int capacity) : of_gang_(capacity + 1, -1) {}
  Queue& operator[](int gpus) {
    int& place = of_gang_[gpus];
    if (place < 0) {
      place = static_cast<int>(queues_.size());
      queues_.push_back({gpus, {}});
    }
    return queues_[place].queue;
  }
  struct Of {
    int gpus;
    Queue queue;
  };
  auto begin() { return queues_.begin(); }
  auto end() { return queues_.end(); }

 private:
  std::vector<Of> queues_;
  std::vector<int> of_gang_;
};

}  // namespace glidepath::detail
