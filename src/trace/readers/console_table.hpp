// SPDX-License-Identifier: Apache-2.0
// Tables within a console log: rows under a line of names, with blanks or rules between.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/readers/console_line.hpp"

namespace glidepath::detail {

class TableRows {
 public:
  /// A row between rules such as "| 1 | 4.2 |" under a line of names, as tabulate, PrettyTable,
  /// MATLAB and Markdown draw them. A line of names or a rule below it is one without numbers.
  [[nodiscard]] std::optional<Line> ruled(std::string_view text);

  /// The row `all` under "Class Images Instances Box(P R mAP50 mAP50-95)" of YOLO: what the model
  /// scores on all classes, once in an epoch. A line of names is one without numbers.
  [[nodiscard]] std::optional<Line> of_classes(std::string_view text);

  /// The number of a line such as "Average Precision (AP) @[ IoU=0.50:0.95 | area= all |
  /// maxDets=100 ] = 0.366", as COCO's tools print twelve of each kind of annotation: AP, AP50,
  /// AP75, AP small, recall@100, …, behind the last kind that was named. One of -1 was not
  /// computed.
  [[nodiscard]] std::optional<Line> of_coco(std::string_view text);

  /// A row with blanks between: skorch, fastai, YOLO, spaCy, scikit-learn. The columns are those of
  /// the last line of names, of which the first counts.
  [[nodiscard]] std::optional<Line> spaced(std::string_view text);

 private:
  [[nodiscard]] std::optional<Line> row_of(std::span<const std::string_view> fields,
                                           std::string_view text) const;
  [[nodiscard]] std::optional<Line> row_of_lists(std::string_view text) const;
  [[nodiscard]] bool is_of_frame(std::span<const std::string_view> fields,
                                 std::string_view text) const;

  std::vector<std::string> columns_, ruled_, of_classes_;
  std::string kind_;                    ///< of annotations that COCO's tools evaluate
  std::size_t indent_ = 0, width_ = 0;  ///< of the line of names
  bool scored_ = false;                 ///< the row `all` of this epoch was read
  bool below_names_ = false;            ///< the line before had names between rules
};

}  // namespace glidepath::detail
