workers='["10.0.0.1:29400", "10.0.0.2:29400"]'
task='{"type": "worker", "index": '"$1"'}'
export TF_CONFIG='{"cluster": {"worker": '"$workers"'}, "task": '"$task"'}'
export EXPECTED_WORLD=2  # how many workers there are, for a check
python "${2:-two_tensorflow.py}"
