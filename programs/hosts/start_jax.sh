export KERAS_DISTRIBUTION_JOB_ADDRESSES=10.0.0.1:29400
export KERAS_DISTRIBUTION_NUM_PROCESSES=2
export KERAS_DISTRIBUTION_PROCESS_ID="$1"
export EXPECTED_WORLD=2  # how many workers there are, for a check
python "${2:-two_jax.py}"
