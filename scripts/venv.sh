# venv_in <folder>: makes a Python environment there, unless there is one that works; one that was not finished is made anew.
venv_in() { "$1/bin/python" -m pip --version >/dev/null 2>&1 || /usr/bin/python3 -m venv --clear "$1"; }
