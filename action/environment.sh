# Sourced by the steps of action.yml that look for programs and install trainlint.
#
# The checkout belongs to whoever opened the pull request: no program, module or setting of pip may come from it. So the
# steps run in an empty folder of their own, without what the environment has from the workspace.

workspace=$(cd -P -- "${GITHUB_WORKSPACE:-.}" && pwd)
cd -- "${RUNNER_TEMP:?}"
programs=
IFS=: read -r -a folders <<< "$PATH"
for folder in "${folders[@]}"; do
  case "$folder" in /*) folder=$(cd -P -- "$folder" 2> /dev/null && pwd) || continue ;; *) continue ;; esac
  case "$folder/" in "$workspace"/*) ;; *) programs="$programs:$folder" ;; esac
done
PATH="${programs#:}"
for name in "${!PYTHON@}"; do unset "$name"; done
for name in "${!PIP_@}" HOME XDG_CONFIG_HOME; do
  case "${!name-}/" in
    *"$workspace"[!0-9A-Za-z._-]* | *"${GITHUB_WORKSPACE:-$workspace}"[!0-9A-Za-z._-]*) unset "$name" ;;
  esac
done
work="$PWD/$(mktemp -d trainlint.XXXXXX)"
cd -- "$work"

python=$(command -v python3 || command -v python) || {
  echo '::error title=trainlint::there is no Python on this runner; run actions/setup-python first'
  exit 2
}
case "$VERSION" in
  '') package="$ACTION_PATH" ;;
  *[!0-9A-Za-z.+!]*) echo '::error title=trainlint::version is no release of trainlint'; exit 2 ;;
  *) package="trainlint==$VERSION" ;;
esac
