# SPDX-License-Identifier: Apache-2.0
# The page of `weir backtest --html` as a part of the program: the archiver page's modules and styles, and uPlot as that
# page has it (archiver/page/page.cmake), in one file.

set(weir_report ${CMAKE_SOURCE_DIR}/deploy/weir/backtest/page)
# What a module imports is above it.
set(weir_report_modules ${weir_charts}/uPlot.js ${weir_page}/clock.js ${weir_page}/dom.js ${weir_page}/theme.js ${weir_page}/seen.js
                        ${weir_page}/words.js ${weir_page}/axis.js ${weir_report}/report.js)
set(weir_report_styles ${weir_charts}/uPlot.css ${weir_page}/page.css ${weir_report}/report.css)
set(weir_report_source ${CMAKE_BINARY_DIR}/page/report_page.c)
add_custom_command(
  OUTPUT ${weir_report_source}
  COMMAND ${CMAKE_COMMAND} -DHTML=${weir_report}/report.html "-DSTYLES=${weir_report_styles}" "-DMODULES=${weir_report_modules}"
          -DINTO=${weir_report_source} -P ${weir_report}/bundle.cmake
  DEPENDS ${weir_report_modules} ${weir_report_styles} ${weir_report}/report.html ${weir_report}/bundle.cmake
  COMMENT "Embedding the page of a report"
  VERBATIM)
target_sources(weir PRIVATE ${weir_report_source})
