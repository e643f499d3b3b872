# Completion of regatta(1) in bash: the program knows its commands, and asks the controller for jobs and nodes.
source <("${BASH_SOURCE[0]%/share/*}/bin/regatta" completion bash)
