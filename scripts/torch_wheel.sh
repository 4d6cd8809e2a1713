# Which build of PyTorch suits this machine. Sourced by setup.sh.
#   torch_wheel <what nvidia-smi prints> [cpu|cuda]
# Prints what to ask pip for, and after a tab what to tell people first, if there is anything to tell. `cpu`: somebody wants the small build; `cuda`: the
# newest one for GPUs, whatever this machine has.
torch_wheel() {
  local newest cuda='' say=''
  newest=$(sed -n 's/^torch==//p' "$(dirname "${BASH_SOURCE[0]}")/requirements.txt")
  # "CUDA Version: 13.0", in newer drivers "CUDA UMD Version: 13.1": the highest that the driver can run.
  [[ ! $1 =~ CUDA( UMD)?\ Version:\ *([0-9]+)\. ]] || cuda=${BASH_REMATCH[2]}
  local small='`./run --device cpu` takes the small one for CPUs instead.'
  if [ "${2:-}" = cuda ]; then
    cuda=13
  elif [ "${2:-}" = cpu ] || [ -z "$1" ]; then
    cuda=''
  elif [ -z "$cuda" ]; then
    say="nvidia-smi reports no GPU with a driver that works, so LibTorch will use the CPU only"
  elif [ "$cuda" -lt 12 ]; then
    say="this machine's NVIDIA driver runs CUDA $cuda at most and LibTorch takes 12, so it will use the CPU only; a newer driver (525; better 580) changes that"
  fi
  # === leaves out builds with a local version, like +cpu: PyPI's own are for CUDA.
  case $cuda in
  '' | [0-9] | 1[01]) printf 'torch==%s\t%s\n' "$newest" "$say" ;;
  12) printf 'torch===2.10.0\t%s\n' "LibTorch for CUDA 12.8, an older one that this driver can run: 4.1 GB to download, 7.2 GB on disk. $small" ;;
  *) printf 'torch===%s\t%s\n' "$newest" "LibTorch for CUDA 13.0: 2.7 GB to download, 4.8 GB on disk. $small" ;;
  esac
}
