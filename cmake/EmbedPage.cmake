# cmake -DFOLDER=web -DOUTPUT=page_files.cpp "-DFILES=index.html;app.js" -P EmbedPage.cmake: writes files as a C++ table
# of parley::net::page_file.
set(type_html "text/html; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_png "image/png")
set(type_webmanifest "application/manifest+json")

set(bytes "")
set(table "")
set(number 0)
foreach(name IN LISTS FILES)
  string(REGEX MATCH "[^.]+$" suffix "${name}")
  if(NOT DEFINED type_${suffix})
    message(FATAL_ERROR "${name}: no content type is known for .${suffix}")
  endif()
  file(READ "${FOLDER}/${name}" hex HEX)
  file(SHA256 "${FOLDER}/${name}" hash)
  string(SUBSTRING "${hash}" 0 32 tag)
  string(LENGTH "${hex}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" hex "${hex}")
  string(REPLACE "\\x0a" "\\x0a\"\n\"" hex "${hex}")
  set(path "/${name}")
  if(name STREQUAL "index.html")
    set(path "/")
  endif()
  string(APPEND bytes "constexpr char file_${number}[] =\n\"${hex}\";\n")
  string(APPEND table "    {\"${path}\", \"${type_${suffix}}\", \"\\\"${tag}\\\"\", {file_${number}, ${size}}},\n")
  math(EXPR number "${number} + 1")
endforeach()

file(WRITE "${OUTPUT}" "#include \"net/routes/page.hpp\"

#include <array>

namespace parley::net {
namespace {

${bytes}
constexpr std::array<page_file, ${number}> table{{
${table}}};

} // namespace

std::span<const page_file> page_files() {
  return table;
}

} // namespace parley::net
")
