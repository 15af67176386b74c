# SPDX-License-Identifier: Apache-2.0
# The archiver's page as a part of the program: every file of this folder that a browser gets, and uPlot, which
# draws its charts, become arrays in one C file of the build (embed.cmake writes it).
#
# uPlot is an npm package that deploy/charts fetches once. Where it cannot be had, or is not wanted, a module that
# exports nothing stands in its place, and the page shows tables alone.

option(WEIR_CHARTS "Give the archiver's page uPlot's charts" ON)

set(weir_page ${CMAKE_SOURCE_DIR}/archiver/page)
set(weir_charts ${CMAKE_BINARY_DIR}/page/charts)
set(weir_charts_failed OFF)
if(WEIR_CHARTS AND NOT EXISTS ${weir_charts}/uPlot.LICENSE.txt)
  execute_process(COMMAND ${CMAKE_SOURCE_DIR}/deploy/charts ${weir_charts}
                  RESULT_VARIABLE weir_charts_failed ERROR_VARIABLE weir_charts_words)
  if(weir_charts_failed)
    message(WARNING "The archiver's page is built without charts, with tables alone: ${weir_charts_words}")
  endif()
endif()
if(NOT WEIR_CHARTS OR weir_charts_failed)
  set(weir_charts ${CMAKE_BINARY_DIR}/page/tables)
  file(WRITE ${weir_charts}/uPlot.js "export default null;\n")
  file(WRITE ${weir_charts}/uPlot.css "")
  file(WRITE ${weir_charts}/uPlot.LICENSE.txt "This build has no uPlot in it.\n")
endif()

file(GLOB weir_page_files CONFIGURE_DEPENDS ${weir_page}/*.html ${weir_page}/*.css ${weir_page}/*.js ${weir_page}/*.svg)
list(APPEND weir_page_files ${weir_charts}/uPlot.js ${weir_charts}/uPlot.css ${weir_charts}/uPlot.LICENSE.txt)
set(weir_page_source ${CMAKE_BINARY_DIR}/page/page_files.c)
add_custom_command(
  OUTPUT ${weir_page_source}
  COMMAND ${CMAKE_COMMAND} "-DFILES=${weir_page_files}" -DINTO=${weir_page_source} -P ${weir_page}/embed.cmake
  DEPENDS ${weir_page_files} ${weir_page}/embed.cmake
  COMMENT "Embedding the archiver's page"
  VERBATIM)
target_sources(weir_archiver PRIVATE ${weir_page_source})
