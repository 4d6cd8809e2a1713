# The page is part of the binary: every file of web/ becomes bytes in a table that routes/page.hpp describes.
set(page_files
    index.html
    replay.html
    icon.png
    icon_192.png
    icon_512.png
    icon_masked.png
    parley.webmanifest
    parts.css
    replay.css
    style.css
    answers.js
    app.js
    base64.js
    camera.js
    captions.js
    charts.js
    chat.js
    composer.js
    connection.js
    controls.js
    conversation_sound.js
    device_choice.js
    devices.js
    duplex.js
    earlier.js
    earlier_list.js
    errors.js
    farewell.js
    farewell_worker.js
    files.js
    kept.js
    keys.js
    markdown.js
    measures.js
    microphone.js
    microphone_worklet.js
    orb.js
    pictures.js
    playback.js
    replay.js
    replay_player.js
    replay_timeline.js
    resampler.js
    server.js
    settings.js
    sound_clock.js
    stereo.js
    theme.js
    transcript.js
    units.js
    view.js
    voice_file.js
    wav.js
    words.js)
list(TRANSFORM page_files PREPEND "${PROJECT_SOURCE_DIR}/web/" OUTPUT_VARIABLE page_sources)
set(page_script "${PROJECT_SOURCE_DIR}/cmake/EmbedPage.cmake")
set(page_table "${CMAKE_CURRENT_BINARY_DIR}/page_files.cpp")
add_custom_command(
  OUTPUT "${page_table}"
  COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${PROJECT_SOURCE_DIR}/web" "-DOUTPUT=${page_table}" "-DFILES=${page_files}" -P "${page_script}"
  DEPENDS ${page_sources} "${page_script}"
  COMMENT "Embedding web/"
  VERBATIM)
target_sources(parley_net PRIVATE routes/page.cpp "${page_table}")
