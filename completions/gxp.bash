# bash completion for gxp. Written by `gxp help --write-docs`; do not edit.
_gxp() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command=${COMP_WORDS[1]} words=""
  [[ $COMP_CWORD -eq 1 ]] && command=""
  [[ $COMP_CWORD -gt 2 ]] && case "$command ${COMP_WORDS[2]}" in
    "topo show" | "topo matrix" | "topo path" | "topo diff" | "topo fix" | "topo doctor" | "topo plan" | "topo lint") command+=" ${COMP_WORDS[2]}" ;;
  esac
  case $command in
    "") words="train convert-ckpt memcalc shard-plan allreduce-test topo help -h --help --version" ;;
    help) words="train convert-ckpt memcalc shard-plan allreduce-test topo help" ;;
    train)
      words="-h --help --set --print-config --nproc --nnodes --node-rank --master --no-bind --join-timeout --max-restarts --spares --resume --overwrite --status --explain-failure --metrics --evaluate --show-data --generate --prompt --chat --prompt-ids --temperature --top-k --top-p --min-p --stop --seed --time-by-class --predicted-on --import --import-arg --export -o --output --print-launch --format"
      case $previous in
        --set) words="model.family= model.vocab_size= model.context= model.hidden= model.layers= model.heads= model.kv_heads= model.head_size= model.mlp_hidden= model.norm_eps= model.activation= model.tied_head= model.attention_bias= model.mlp_bias= model.query_key_norm= model.parallel_residual= model.rope_theta= model.rope_local_theta= model.rope_partial= model.rope_scaling= model.rope_factor= model.rope_original_context= model.rope_low_freq_factor= model.rope_high_freq_factor= model.rope_beta_fast= model.rope_beta_slow= model.rope_truncate= model.rope_attention_factor= model.unrotated_layers= model.window= model.window_layers= model.attention_scale= model.attention_scale_by_layer= model.score_cap= model.logit_cap= model.embedding_scale= model.residual_scale= model.logit_divisor= model.pad_token= model.config= model.init= lora.rank= lora.alpha= lora.targets= lora.dropout= lora.init= lora.rslora= data.train= data.weights= data.valid= data.validation_split= data.format= data.field= data.document_separator= data.tokenizer= data.end_token= data.chat_template= data.cache= data.sequence= data.order= data.cross_documents= data.changed= train.steps= train.micro_batch= train.grad_accum= train.global_batch= train.precision= train.matmul= train.fp8_accumulation= train.fp8_weights= train.rounding= train.grad_accum_dtype= train.recompute= train.recompute_units= train.keep= train.frozen= train.seed= train.deterministic= train.check_replicas= train.bad_step= train.loss_outlier= train.norm_outlier= train.device= train.threads= train.device_memory_bytes= train.gemm_cache= train.cuda_graphs= train.attention= train.logits_rows= train.log_every= train.profile_steps= train.trace_steps= train.valid_every= train.valid_batches= train.tensorboard= train.run_dir= fp16.initial_scale_power= fp16.window= fp16.hysteresis= fp16.consecutive_hysteresis= fp16.min_scale= optim.name= optim.lr= optim.beta1= optim.beta2= optim.eps= optim.state_dtype= optim.weight_decay= optim.decay_vectors= optim.momentum= optim.dampening= optim.nesterov= optim.ns_steps= optim.adjust_lr= optim.adamw_lr_ratio= optim.decay_rate= optim.clip_threshold= optim.eps1= optim.clip= lr_schedule.name= lr_schedule.warmup_steps= lr_schedule.total_steps= lr_schedule.min_lr= lr_schedule.decay_fraction= parallel.strategy= parallel.shard_size= parallel.optimizer_over_replicas= parallel.wrap= parallel.wrap_min_params= parallel.wrap_units= parallel.forward_prefetch= parallel.backward_prefetch= parallel.prefetch_wraps= parallel.prefetch_params= parallel.max_live_params= parallel.persist_params= parallel.reuse_params= parallel.hold_parameters= parallel.bucket_bytes= parallel.reduce_dtype= parallel.hold_gradients= offload.optimizer= offload.parameters= offload.ratio= offload.step_tile= offload.path= offload.io= checkpoint.dir= checkpoint.every= checkpoint.keep= checkpoint.keep_every= checkpoint.async= checkpoint.layout= checkpoint.export= checkpoint.replica= checkpoint.replica_every= checkpoint.replica_dir= comm.transport= comm.engine= comm.algorithm= comm.channels= comm.segment_bytes= comm.profile= comm.topology= comm.codec= comm.gather_codec= comm.nccl_min_ctas= comm.nccl_max_ctas= comm.streams= comm.socket_buffer_bytes= comm.interface= comm.port_range= comm.protect= comm.cma= comm.verbs_devices= comm.verbs_queue_pairs= comm.verbs_gid_index= comm.verbs_pkey_index= comm.verbs_traffic_class= comm.flight_recorder= comm.silence_s= comm.timeout_s=" ;;
        --nproc) words="N gpu" ;;
        --nnodes) words="N MIN:MAX" ;;
        --node-rank) words="" ;;
        --master) words="" ;;
        --join-timeout) words="" ;;
        --max-restarts) words="" ;;
        --spares) words="" ;;
        --status) words="" ;;
        --explain-failure) words="" ;;
        --metrics) words="" ;;
        --show-data) words="" ;;
        --generate) words="" ;;
        --prompt) words="" ;;
        --prompt-ids) words="" ;;
        --temperature) words="" ;;
        --top-k) words="" ;;
        --top-p) words="" ;;
        --min-p) words="" ;;
        --stop) words="" ;;
        --seed) words="" ;;
        --predicted-on) words="a100-40gb a100-80gb h100 h100-96gb-500w h200 b200 gb200 b300 gb300" ;;
        --import) words="" ;;
        --import-arg) words="" ;;
        --export) words="" ;;
        -o | --output) words="" ;;
        --print-launch) words="slurm k8s ssh mpi" ;;
        --format) words="text csv json" ;;
      esac ;;
    convert-ckpt)
      words="-h --help --to --dtype --map --merge --config --max-shard-size --shards --step --inspect --hash --verify --diff --drop-optimizer --dry-run --force --resume --format"
      case $previous in
        --to) words="gxp huggingface peft safetensors pt dcp gguf llmc universal" ;;
        --dtype) words="stored f32 bf16 f16" ;;
        --map) words="" ;;
        --merge) words="" ;;
        --config) words="" ;;
        --max-shard-size) words="" ;;
        --shards) words="" ;;
        --step) words="" ;;
        --format) words="text csv json" ;;
      esac ;;
    memcalc)
      words="-h --help --params --list --gpus --nproc --limit --solve --explain --unit --format --stage --precision --optimizer --sequence --software --micro-batch --accumulate --shard --tensor-parallel --pipeline-parallel --interleave --no-sequence-parallel --context-parallel --recompute --offload --padding --compat --largest-layer --gpus-per-host --set --nnodes --svg"
      case $previous in
        --params) words="" ;;
        --gpus | --nproc) words="" ;;
        --limit) words="" ;;
        --solve) words="gpus batch seq layers" ;;
        --unit) words="GB GiB MB MiB" ;;
        --format) words="text csv json" ;;
        --stage) words="0 1 2 3" ;;
        --precision) words="fp32 fp16 bf16 bf16-fp32-grads pure-bf16" ;;
        --optimizer) words="adamw adam sgd momentum lion adafactor muon adamw-bf16 adamw-int8" ;;
        --sequence) words="" ;;
        --software) words="megatron fsdp fsdp-async-tp fsdp-eager llm-foundry megatron-2021 deepspeed-2021" ;;
        --micro-batch) words="" ;;
        --accumulate) words="" ;;
        --shard) words="" ;;
        --tensor-parallel) words="" ;;
        --pipeline-parallel) words="" ;;
        --interleave) words="" ;;
        --context-parallel) words="" ;;
        --recompute) words="none selective full" ;;
        --offload) words="none optimizer all" ;;
        --compat) words="paper deepspeed" ;;
        --largest-layer) words="" ;;
        --gpus-per-host) words="" ;;
        --set) words="model.family= model.vocab_size= model.context= model.hidden= model.layers= model.heads= model.kv_heads= model.head_size= model.mlp_hidden= model.norm_eps= model.activation= model.tied_head= model.attention_bias= model.mlp_bias= model.query_key_norm= model.parallel_residual= model.rope_theta= model.rope_local_theta= model.rope_partial= model.rope_scaling= model.rope_factor= model.rope_original_context= model.rope_low_freq_factor= model.rope_high_freq_factor= model.rope_beta_fast= model.rope_beta_slow= model.rope_truncate= model.rope_attention_factor= model.unrotated_layers= model.window= model.window_layers= model.attention_scale= model.attention_scale_by_layer= model.score_cap= model.logit_cap= model.embedding_scale= model.residual_scale= model.logit_divisor= model.pad_token= model.config= model.init= lora.rank= lora.alpha= lora.targets= lora.dropout= lora.init= lora.rslora= data.train= data.weights= data.valid= data.validation_split= data.format= data.field= data.document_separator= data.tokenizer= data.end_token= data.chat_template= data.cache= data.sequence= data.order= data.cross_documents= data.changed= train.steps= train.micro_batch= train.grad_accum= train.global_batch= train.precision= train.matmul= train.fp8_accumulation= train.fp8_weights= train.rounding= train.grad_accum_dtype= train.recompute= train.recompute_units= train.keep= train.frozen= train.seed= train.deterministic= train.check_replicas= train.bad_step= train.loss_outlier= train.norm_outlier= train.device= train.threads= train.device_memory_bytes= train.gemm_cache= train.cuda_graphs= train.attention= train.logits_rows= train.log_every= train.profile_steps= train.trace_steps= train.valid_every= train.valid_batches= train.tensorboard= train.run_dir= fp16.initial_scale_power= fp16.window= fp16.hysteresis= fp16.consecutive_hysteresis= fp16.min_scale= optim.name= optim.lr= optim.beta1= optim.beta2= optim.eps= optim.state_dtype= optim.weight_decay= optim.decay_vectors= optim.momentum= optim.dampening= optim.nesterov= optim.ns_steps= optim.adjust_lr= optim.adamw_lr_ratio= optim.decay_rate= optim.clip_threshold= optim.eps1= optim.clip= lr_schedule.name= lr_schedule.warmup_steps= lr_schedule.total_steps= lr_schedule.min_lr= lr_schedule.decay_fraction= parallel.strategy= parallel.shard_size= parallel.optimizer_over_replicas= parallel.wrap= parallel.wrap_min_params= parallel.wrap_units= parallel.forward_prefetch= parallel.backward_prefetch= parallel.prefetch_wraps= parallel.prefetch_params= parallel.max_live_params= parallel.persist_params= parallel.reuse_params= parallel.hold_parameters= parallel.bucket_bytes= parallel.reduce_dtype= parallel.hold_gradients= offload.optimizer= offload.parameters= offload.ratio= offload.step_tile= offload.path= offload.io= checkpoint.dir= checkpoint.every= checkpoint.keep= checkpoint.keep_every= checkpoint.async= checkpoint.layout= checkpoint.export= checkpoint.replica= checkpoint.replica_every= checkpoint.replica_dir= comm.transport= comm.engine= comm.algorithm= comm.channels= comm.segment_bytes= comm.profile= comm.topology= comm.codec= comm.gather_codec= comm.nccl_min_ctas= comm.nccl_max_ctas= comm.streams= comm.socket_buffer_bytes= comm.interface= comm.port_range= comm.protect= comm.cma= comm.verbs_devices= comm.verbs_queue_pairs= comm.verbs_gid_index= comm.verbs_pkey_index= comm.verbs_traffic_class= comm.flight_recorder= comm.silence_s= comm.timeout_s=" ;;
        --nnodes) words="" ;;
        --svg) words="" ;;
      esac ;;
    shard-plan)
      words="-h --help --set --nproc --nnodes --rank --units --program --compare --svg --measure --gflops --time-by-class --memory-gb-per-s --file-gb-per-s --cluster --gpu --gpus --sequence --global-batch --stage --precision --software --micro-batch --accumulate --shard --tensor-parallel --pipeline-parallel --interleave --no-sequence-parallel --context-parallel --recompute --offload --limit --search --format"
      case $previous in
        --set) words="model.family= model.vocab_size= model.context= model.hidden= model.layers= model.heads= model.kv_heads= model.head_size= model.mlp_hidden= model.norm_eps= model.activation= model.tied_head= model.attention_bias= model.mlp_bias= model.query_key_norm= model.parallel_residual= model.rope_theta= model.rope_local_theta= model.rope_partial= model.rope_scaling= model.rope_factor= model.rope_original_context= model.rope_low_freq_factor= model.rope_high_freq_factor= model.rope_beta_fast= model.rope_beta_slow= model.rope_truncate= model.rope_attention_factor= model.unrotated_layers= model.window= model.window_layers= model.attention_scale= model.attention_scale_by_layer= model.score_cap= model.logit_cap= model.embedding_scale= model.residual_scale= model.logit_divisor= model.pad_token= model.config= model.init= lora.rank= lora.alpha= lora.targets= lora.dropout= lora.init= lora.rslora= data.train= data.weights= data.valid= data.validation_split= data.format= data.field= data.document_separator= data.tokenizer= data.end_token= data.chat_template= data.cache= data.sequence= data.order= data.cross_documents= data.changed= train.steps= train.micro_batch= train.grad_accum= train.global_batch= train.precision= train.matmul= train.fp8_accumulation= train.fp8_weights= train.rounding= train.grad_accum_dtype= train.recompute= train.recompute_units= train.keep= train.frozen= train.seed= train.deterministic= train.check_replicas= train.bad_step= train.loss_outlier= train.norm_outlier= train.device= train.threads= train.device_memory_bytes= train.gemm_cache= train.cuda_graphs= train.attention= train.logits_rows= train.log_every= train.profile_steps= train.trace_steps= train.valid_every= train.valid_batches= train.tensorboard= train.run_dir= fp16.initial_scale_power= fp16.window= fp16.hysteresis= fp16.consecutive_hysteresis= fp16.min_scale= optim.name= optim.lr= optim.beta1= optim.beta2= optim.eps= optim.state_dtype= optim.weight_decay= optim.decay_vectors= optim.momentum= optim.dampening= optim.nesterov= optim.ns_steps= optim.adjust_lr= optim.adamw_lr_ratio= optim.decay_rate= optim.clip_threshold= optim.eps1= optim.clip= lr_schedule.name= lr_schedule.warmup_steps= lr_schedule.total_steps= lr_schedule.min_lr= lr_schedule.decay_fraction= parallel.strategy= parallel.shard_size= parallel.optimizer_over_replicas= parallel.wrap= parallel.wrap_min_params= parallel.wrap_units= parallel.forward_prefetch= parallel.backward_prefetch= parallel.prefetch_wraps= parallel.prefetch_params= parallel.max_live_params= parallel.persist_params= parallel.reuse_params= parallel.hold_parameters= parallel.bucket_bytes= parallel.reduce_dtype= parallel.hold_gradients= offload.optimizer= offload.parameters= offload.ratio= offload.step_tile= offload.path= offload.io= checkpoint.dir= checkpoint.every= checkpoint.keep= checkpoint.keep_every= checkpoint.async= checkpoint.layout= checkpoint.export= checkpoint.replica= checkpoint.replica_every= checkpoint.replica_dir= comm.transport= comm.engine= comm.algorithm= comm.channels= comm.segment_bytes= comm.profile= comm.topology= comm.codec= comm.gather_codec= comm.nccl_min_ctas= comm.nccl_max_ctas= comm.streams= comm.socket_buffer_bytes= comm.interface= comm.port_range= comm.protect= comm.cma= comm.verbs_devices= comm.verbs_queue_pairs= comm.verbs_gid_index= comm.verbs_pkey_index= comm.verbs_traffic_class= comm.flight_recorder= comm.silence_s= comm.timeout_s=" ;;
        --nproc) words="" ;;
        --nnodes) words="" ;;
        --rank) words="" ;;
        --svg) words="" ;;
        --gflops) words="" ;;
        --time-by-class) words="a100-40gb a100-80gb h100 h100-96gb-500w h200 b200 gb200 b300 gb300" ;;
        --memory-gb-per-s) words="" ;;
        --file-gb-per-s) words="" ;;
        --cluster) words="" ;;
        --gpu) words="a100-40gb a100-80gb h100 h100-96gb-500w h200 b200 gb200 b300 gb300" ;;
        --gpus) words="" ;;
        --sequence) words="" ;;
        --global-batch) words="" ;;
        --stage) words="" ;;
        --precision) words="bf16 fp8 mxfp8" ;;
        --software) words="megatron fsdp fsdp-async-tp fsdp-eager llm-foundry megatron-2021 deepspeed-2021" ;;
        --micro-batch) words="" ;;
        --accumulate) words="" ;;
        --shard) words="" ;;
        --tensor-parallel) words="" ;;
        --pipeline-parallel) words="" ;;
        --interleave) words="" ;;
        --context-parallel) words="" ;;
        --recompute) words="none selective full" ;;
        --offload) words="none optimizer all" ;;
        --limit) words="" ;;
        --format) words="text csv json" ;;
      esac ;;
    allreduce-test)
      words="-h --help --op -o --redop -d --datatype -r --root -b --minbytes -e --maxbytes -i --stepbytes -f --stepfactor -n --iters -w --warmup_iters -m --agg_iters -N --run_cycles -c --check -z --blocking --device --memory -u --unalign --transport --engine --algorithm --channels --segment-bytes --profile --topology --codec --protect --flight-recorder -T --timeout --set --deterministic --nproc --nnodes --node-rank --master --no-bind --join-timeout --explain --svg --calibrate --simulate --ranks --rank-order --channel-order --trace --show-record --min-bw --baseline --tolerance -a --average -I --per_iter_timing -S --report_timestamps -J --output_file --format"
      case $previous in
        --op) words="all_reduce all_gather reduce_scatter broadcast reduce gather scatter alltoall sendrecv barrier all" ;;
        -o | --redop) words="sum prod min max avg mulsum band bor bxor land lor lxor all" ;;
        -d | --datatype) words="double float half bfloat16 int64 int32 int8 uint8 all" ;;
        -r | --root) words="RANK all" ;;
        -b | --minbytes) words="" ;;
        -e | --maxbytes) words="" ;;
        -i | --stepbytes) words="" ;;
        -f | --stepfactor) words="" ;;
        -n | --iters) words="" ;;
        -w | --warmup_iters) words="" ;;
        -m | --agg_iters) words="" ;;
        -N | --run_cycles) words="" ;;
        -c | --check) words="" ;;
        -z | --blocking) words="1 2 3" ;;
        --device) words="cpu cuda" ;;
        --memory) words="communicator ordinary" ;;
        -u | --unalign) words="" ;;
        --transport) words="auto shm verbs tcp" ;;
        --engine) words="auto native mpi nccl" ;;
        --algorithm) words="" ;;
        --channels) words="" ;;
        --segment-bytes) words="" ;;
        --profile) words="" ;;
        --topology) words="" ;;
        --codec) words="none bf16 f16 int8 int4" ;;
        --protect) words="none authenticate encrypt" ;;
        --flight-recorder) words="" ;;
        -T | --timeout) words="" ;;
        --set) words="model.family= model.vocab_size= model.context= model.hidden= model.layers= model.heads= model.kv_heads= model.head_size= model.mlp_hidden= model.norm_eps= model.activation= model.tied_head= model.attention_bias= model.mlp_bias= model.query_key_norm= model.parallel_residual= model.rope_theta= model.rope_local_theta= model.rope_partial= model.rope_scaling= model.rope_factor= model.rope_original_context= model.rope_low_freq_factor= model.rope_high_freq_factor= model.rope_beta_fast= model.rope_beta_slow= model.rope_truncate= model.rope_attention_factor= model.unrotated_layers= model.window= model.window_layers= model.attention_scale= model.attention_scale_by_layer= model.score_cap= model.logit_cap= model.embedding_scale= model.residual_scale= model.logit_divisor= model.pad_token= model.config= model.init= lora.rank= lora.alpha= lora.targets= lora.dropout= lora.init= lora.rslora= data.train= data.weights= data.valid= data.validation_split= data.format= data.field= data.document_separator= data.tokenizer= data.end_token= data.chat_template= data.cache= data.sequence= data.order= data.cross_documents= data.changed= train.steps= train.micro_batch= train.grad_accum= train.global_batch= train.precision= train.matmul= train.fp8_accumulation= train.fp8_weights= train.rounding= train.grad_accum_dtype= train.recompute= train.recompute_units= train.keep= train.frozen= train.seed= train.deterministic= train.check_replicas= train.bad_step= train.loss_outlier= train.norm_outlier= train.device= train.threads= train.device_memory_bytes= train.gemm_cache= train.cuda_graphs= train.attention= train.logits_rows= train.log_every= train.profile_steps= train.trace_steps= train.valid_every= train.valid_batches= train.tensorboard= train.run_dir= fp16.initial_scale_power= fp16.window= fp16.hysteresis= fp16.consecutive_hysteresis= fp16.min_scale= optim.name= optim.lr= optim.beta1= optim.beta2= optim.eps= optim.state_dtype= optim.weight_decay= optim.decay_vectors= optim.momentum= optim.dampening= optim.nesterov= optim.ns_steps= optim.adjust_lr= optim.adamw_lr_ratio= optim.decay_rate= optim.clip_threshold= optim.eps1= optim.clip= lr_schedule.name= lr_schedule.warmup_steps= lr_schedule.total_steps= lr_schedule.min_lr= lr_schedule.decay_fraction= parallel.strategy= parallel.shard_size= parallel.optimizer_over_replicas= parallel.wrap= parallel.wrap_min_params= parallel.wrap_units= parallel.forward_prefetch= parallel.backward_prefetch= parallel.prefetch_wraps= parallel.prefetch_params= parallel.max_live_params= parallel.persist_params= parallel.reuse_params= parallel.hold_parameters= parallel.bucket_bytes= parallel.reduce_dtype= parallel.hold_gradients= offload.optimizer= offload.parameters= offload.ratio= offload.step_tile= offload.path= offload.io= checkpoint.dir= checkpoint.every= checkpoint.keep= checkpoint.keep_every= checkpoint.async= checkpoint.layout= checkpoint.export= checkpoint.replica= checkpoint.replica_every= checkpoint.replica_dir= comm.transport= comm.engine= comm.algorithm= comm.channels= comm.segment_bytes= comm.profile= comm.topology= comm.codec= comm.gather_codec= comm.nccl_min_ctas= comm.nccl_max_ctas= comm.streams= comm.socket_buffer_bytes= comm.interface= comm.port_range= comm.protect= comm.cma= comm.verbs_devices= comm.verbs_queue_pairs= comm.verbs_gid_index= comm.verbs_pkey_index= comm.verbs_traffic_class= comm.flight_recorder= comm.silence_s= comm.timeout_s=" ;;
        --nproc) words="N gpu" ;;
        --nnodes) words="N MIN:MAX" ;;
        --node-rank) words="" ;;
        --master) words="" ;;
        --join-timeout) words="" ;;
        --svg) words="" ;;
        --calibrate) words="" ;;
        --simulate) words="FILE profile" ;;
        --ranks) words="" ;;
        --rank-order) words="given planned" ;;
        --channel-order) words="given planned" ;;
        --trace) words="" ;;
        --show-record) words="" ;;
        --min-bw) words="" ;;
        --baseline) words="" ;;
        --tolerance) words="" ;;
        -a | --average) words="0 1 2 3" ;;
        -I | --per_iter_timing) words="0 1" ;;
        -S | --report_timestamps) words="0 1" ;;
        -J | --output_file) words="" ;;
        --format) words="text csv json" ;;
      esac ;;
    topo | "topo show")
      words="-h --help --from --format --rank --hosts -m --matrix --probe --probe-seconds --set --nproc --nnodes --node-rank --master --no-bind --join-timeout"
      [[ $command == topo ]] && words="show matrix path diff fix doctor plan lint $words"
      case $previous in
        --from) words="FILE NAME live" ;;
        --format) words="text json nccl-xml svg" ;;
        --rank) words="" ;;
        --hosts) words="" ;;
        --probe-seconds) words="" ;;
        --set) words="model.family= model.vocab_size= model.context= model.hidden= model.layers= model.heads= model.kv_heads= model.head_size= model.mlp_hidden= model.norm_eps= model.activation= model.tied_head= model.attention_bias= model.mlp_bias= model.query_key_norm= model.parallel_residual= model.rope_theta= model.rope_local_theta= model.rope_partial= model.rope_scaling= model.rope_factor= model.rope_original_context= model.rope_low_freq_factor= model.rope_high_freq_factor= model.rope_beta_fast= model.rope_beta_slow= model.rope_truncate= model.rope_attention_factor= model.unrotated_layers= model.window= model.window_layers= model.attention_scale= model.attention_scale_by_layer= model.score_cap= model.logit_cap= model.embedding_scale= model.residual_scale= model.logit_divisor= model.pad_token= model.config= model.init= lora.rank= lora.alpha= lora.targets= lora.dropout= lora.init= lora.rslora= data.train= data.weights= data.valid= data.validation_split= data.format= data.field= data.document_separator= data.tokenizer= data.end_token= data.chat_template= data.cache= data.sequence= data.order= data.cross_documents= data.changed= train.steps= train.micro_batch= train.grad_accum= train.global_batch= train.precision= train.matmul= train.fp8_accumulation= train.fp8_weights= train.rounding= train.grad_accum_dtype= train.recompute= train.recompute_units= train.keep= train.frozen= train.seed= train.deterministic= train.check_replicas= train.bad_step= train.loss_outlier= train.norm_outlier= train.device= train.threads= train.device_memory_bytes= train.gemm_cache= train.cuda_graphs= train.attention= train.logits_rows= train.log_every= train.profile_steps= train.trace_steps= train.valid_every= train.valid_batches= train.tensorboard= train.run_dir= fp16.initial_scale_power= fp16.window= fp16.hysteresis= fp16.consecutive_hysteresis= fp16.min_scale= optim.name= optim.lr= optim.beta1= optim.beta2= optim.eps= optim.state_dtype= optim.weight_decay= optim.decay_vectors= optim.momentum= optim.dampening= optim.nesterov= optim.ns_steps= optim.adjust_lr= optim.adamw_lr_ratio= optim.decay_rate= optim.clip_threshold= optim.eps1= optim.clip= lr_schedule.name= lr_schedule.warmup_steps= lr_schedule.total_steps= lr_schedule.min_lr= lr_schedule.decay_fraction= parallel.strategy= parallel.shard_size= parallel.optimizer_over_replicas= parallel.wrap= parallel.wrap_min_params= parallel.wrap_units= parallel.forward_prefetch= parallel.backward_prefetch= parallel.prefetch_wraps= parallel.prefetch_params= parallel.max_live_params= parallel.persist_params= parallel.reuse_params= parallel.hold_parameters= parallel.bucket_bytes= parallel.reduce_dtype= parallel.hold_gradients= offload.optimizer= offload.parameters= offload.ratio= offload.step_tile= offload.path= offload.io= checkpoint.dir= checkpoint.every= checkpoint.keep= checkpoint.keep_every= checkpoint.async= checkpoint.layout= checkpoint.export= checkpoint.replica= checkpoint.replica_every= checkpoint.replica_dir= comm.transport= comm.engine= comm.algorithm= comm.channels= comm.segment_bytes= comm.profile= comm.topology= comm.codec= comm.gather_codec= comm.nccl_min_ctas= comm.nccl_max_ctas= comm.streams= comm.socket_buffer_bytes= comm.interface= comm.port_range= comm.protect= comm.cma= comm.verbs_devices= comm.verbs_queue_pairs= comm.verbs_gid_index= comm.verbs_pkey_index= comm.verbs_traffic_class= comm.flight_recorder= comm.silence_s= comm.timeout_s=" ;;
        --nproc) words="N gpu" ;;
        --nnodes) words="N MIN:MAX" ;;
        --node-rank) words="" ;;
        --master) words="" ;;
        --join-timeout) words="" ;;
      esac ;;
    "topo matrix")
      words="-h --help --from --like --nccl --format"
      case $previous in
        --from) words="FILE NAME live" ;;
        --like) words="smi nccl nccl-used" ;;
        --nccl) words="" ;;
        --format) words="text csv json" ;;
      esac ;;
    "topo path")
      words="-h --help --from --nccl --format"
      case $previous in
        --from) words="FILE NAME live" ;;
        --nccl) words="" ;;
        --format) words="text csv json" ;;
      esac ;;
    "topo diff")
      words="-h --help --format"
      case $previous in
        --format) words="text csv json" ;;
      esac ;;
    "topo fix")
      words="-h --help --for-vm --devices -o --output"
      case $previous in
        --for-vm) words="FILE NAME" ;;
        --devices) words="FILE live" ;;
        -o | --output) words="" ;;
      esac ;;
    "topo doctor")
      words="-h --help --from --format"
      case $previous in
        --from) words="ROOT live" ;;
        --format) words="text csv json" ;;
      esac ;;
    "topo plan")
      words="-h --help --from --format --hosts --channels"
      case $previous in
        --from) words="FILE NAME live" ;;
        --format) words="text json nccl-xml hostfile rank-plan" ;;
        --hosts) words="" ;;
        --channels) words="" ;;
      esac ;;
    "topo lint")
      words="-h --help --format --strict --rules"
      case $previous in
        --format) words="text csv json" ;;
      esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
  return 0
}
complete -o default -F _gxp gxp
