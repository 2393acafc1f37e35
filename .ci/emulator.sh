# shellcheck shell=bash
# Sourced by run: the servers that its steps need, and their end.

: "${cache:?}" "${work:?}" # directories

readonly dynoxide_version=3.2.0 # of the crate dynoxide-rs; the binary has another number
readonly dynoxide=$cache/dynoxide/bin/dynoxide

declare -A started=() # the ids of the processes to stop

stop() {
	kill "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
	unset "started[$1]"
}

stop_all() {
	local pid
	remove_containers
	for pid in "${!started[@]}"; do
		stop "$pid"
	done
}

# wait_for SECONDS PID COMMAND...: until COMMAND succeeds; fails when the time is over or process PID is gone.
wait_for() {
	local deadline=$((SECONDS + $1)) pid=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		if ((SECONDS >= deadline)) || ! kill -0 "$pid" 2>/dev/null; then
			return 1
		fi
		sleep 0.2
	done
}

# need COMMAND PACKAGE...: installs Debian packages where COMMAND is missing.
need() {
	local command=$1
	shift
	if command -v "$command" >/dev/null; then
		return
	fi
	echo "installing $*"
	if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y "$@"; } >"$work/apt.log" 2>&1 </dev/null; then
		tail -n 5 "$work/apt.log"
		return 1
	fi
}

install_dynoxide() {
	if [[ -x $dynoxide ]] && grep -qF "\"dynoxide-rs $dynoxide_version " "$cache/dynoxide/.crates.toml"; then
		return
	fi
	echo "building dynoxide-rs $dynoxide_version, some minutes"
	# Static, so that an image needs nothing but this file.
	RUSTFLAGS="-C target-feature=+crt-static" CARGO_TARGET_DIR=$work/target \
		cargo install --quiet --locked dynoxide-rs --version "$dynoxide_version" --no-default-features \
		--features native-sqlite,http-server,cli --target x86_64-unknown-linux-gnu --root "$cache/dynoxide"
}

# start_dynoxide PORT [FLAG...]: leaves the process id in $dynoxide_pid.
start_dynoxide() {
	local port=$1 log=$work/dynoxide-$1.log
	"$dynoxide" serve --log quiet --port "$@" </dev/null >"$log" 2>&1 &
	dynoxide_pid=$!
	started[$dynoxide_pid]=1
	if ! wait_for 30 "$dynoxide_pid" bash -c "exec 3<>/dev/tcp/127.0.0.1/$port"; then
		echo "dynoxide did not start on port $port:" >&2
		tail -n 5 "$log" >&2
		return 1
	fi
}

start_docker() {
	if docker info >/dev/null 2>&1; then
		return
	fi
	need dockerd docker.io || return 1
	dockerd </dev/null >"$work/dockerd.log" 2>&1 &
	started[$!]=1
	if ! wait_for 60 "$!" docker info; then
		tail -n 5 "$work/dockerd.log"
		stop "$!"
		return 1
	fi
}

# pick_image: DynamoDB Local where it can be pulled, else dynoxide. Leaves its name in $image.
pick_image() {
	image=${DYNACTOR_TEST_IMAGE:-$(sed -n 's/^const defaultImage = "\(.*\)"$/\1/p' dynactortest/container.go)}
	if docker image inspect "$image" >/dev/null 2>&1 || timeout 60 docker pull -q "$image" 2>/dev/null; then
		return
	fi
	image=dynactor-test-dynoxide:$dynoxide_version
	mkdir "$work/image" && cp "$dynoxide" "$work/image/" || return 1
	cat >"$work/image/Dockerfile" <<-'EOF'
		FROM scratch
		COPY dynoxide /dynoxide
		EXPOSE 8000
		ENTRYPOINT ["/dynoxide", "serve", "--host", "0.0.0.0", "--port", "8000"]
	EOF
	build_image "$image" "$work/image"
}

# build_image TAG ARGUMENT...
build_image() {
	if ! DOCKER_BUILDKIT=0 docker build -q -t "$@" >"$work/build.log" 2>&1; then
		tail -n 5 "$work/build.log"
		return 1
	fi
}

# label_image: the tests' containers outlive them where testcontainers has no reaper. They inherit a label of this run
# from their image, by which remove_containers knows them.
label_image() {
	label=dynactor.run=$$.$RANDOM
	export DYNACTOR_TEST_IMAGE=dynactor-test-run:${label#*=}
	build_image "$DYNACTOR_TEST_IMAGE" --label "$label" - <<<"FROM $image"
}

remove_containers() {
	if [[ -n ${label:-} ]]; then
		docker ps -aq --filter "label=$label" 2>/dev/null | xargs -r docker rm -f -v >/dev/null || true
		docker rmi "$DYNACTOR_TEST_IMAGE" >/dev/null 2>&1 || true
	fi
}

# try_image: a daemon may run where containers may not.
try_image() {
	local id
	id=$(docker run -d -p 127.0.0.1::8000 "$DYNACTOR_TEST_IMAGE") && docker rm -f "$id" >/dev/null
}

# start_emulator: containers where the machine allows them, else dynoxide without one.
start_emulator() {
	if [[ -n ${DYNAMODB_ENDPOINT:-} ]]; then
		echo "emulator ring: the server at $DYNAMODB_ENDPOINT"
	elif start_docker && pick_image && label_image && try_image; then
		export TESTCONTAINERS_RYUK_DISABLED=true
		if [[ -e /.dockerenv ]]; then # published ports are here, not at the gateway
			export TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1
		fi
		echo "emulator ring: containers of $image"
	else
		start_dynoxide 18000
		export DYNAMODB_ENDPOINT=http://127.0.0.1:18000
		echo "emulator ring: no usable Docker here, so dynoxide without a container at $DYNAMODB_ENDPOINT"
	fi
}
