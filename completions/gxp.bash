# bash completion for gxp. Written by `gxp help --write-docs`; do not edit.
_gxp() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command=${COMP_WORDS[1]} words=""
  [[ $COMP_CWORD -eq 1 ]] && command=""
  case $command in
    "") words="train convert-ckpt help -h --help --version" ;;
    help) words="train convert-ckpt help" ;;
    train)
      words="-h --help --set --nproc --nnodes --node-rank --master --join-timeout --resume --metrics --generate --prompt --temperature --print-config --format"
      case $previous in
        --set) words="model.family= model.vocab_size= model.context= model.hidden= model.layers= model.heads= model.norm_eps= model.init= data.train= data.valid= data.tokenizer= data.sequence= data.order= train.steps= train.micro_batch= train.grad_accum= train.precision= train.seed= train.deterministic= train.device= train.threads= train.log_every= train.valid_every= train.valid_batches= train.run_dir= optim.name= optim.lr= optim.beta1= optim.beta2= optim.eps= optim.weight_decay= optim.clip= lr_schedule.name= lr_schedule.warmup_steps= lr_schedule.total_steps= lr_schedule.min_lr= lr_schedule.decay_fraction= parallel.strategy= parallel.bucket_bytes= checkpoint.dir= checkpoint.every= checkpoint.keep= comm.transport= comm.engine= comm.algorithm= comm.timeout_s= comm.segment_bytes=" ;;
        --nproc) words="" ;;
        --nnodes) words="" ;;
        --node-rank) words="" ;;
        --master) words="" ;;
        --join-timeout) words="" ;;
        --metrics) words="" ;;
        --generate) words="" ;;
        --prompt) words="" ;;
        --temperature) words="" ;;
        --format) words="text csv json" ;;
      esac ;;
    convert-ckpt)
      words="-h --help --to --shard-size --inspect --hash --verify --force --format"
      case $previous in
        --to) words="gxp huggingface safetensors" ;;
        --shard-size) words="" ;;
        --format) words="text csv json" ;;
      esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
  return 0
}
complete -o default -F _gxp gxp
