# Parts of a script, each with a time limit. A part that fails does not keep the others from running.
failed=()

# part NAME COMMAND...: prints the summary of a command, or all of its output if it fails.
part() {
    local name=$1 start=$SECONDS code=0
    shift
    timeout --kill-after=10 "$PART_SECONDS" "$@" >/run/out 2>&1 || code=$?
    if [ $code = 0 ] && ! grep -q 'left to the MPI' /run/out; then
        grep 'checks passed\|test result' /run/out | sed "s|\$|, $name, $((SECONDS - start)) s|"
        return
    fi
    failed+=("$name")
    case $code in
    0) echo "$name: pario did not handle the file" ;;
    124 | 137) echo "$name: did not end within $PART_SECONDS s" ;;
    *) echo "$name: failed with $code" ;;
    esac
    # Not the hints that pario prints for every file.
    grep -v '^pario: [a-z_]* = ' /run/out | tail -n 60
    # Launchers leave ranks behind.
    pkill -9 -f 'vm/programs/|hydra_pmi_proxy|orted' || true
}

# Fails if a part has.
end_parts() {
    [ ${#failed[@]} = 0 ] && return
    echo "failed: ${failed[*]}"
    exit 1
}
