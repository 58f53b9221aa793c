r=$1 c=$2; shift 2
n=pitchpipe-done-$r-$(printf %s "$NOMAD_JOB_ID" | tr -c A-Za-z0-9 _)-$NOMAD_ALLOC_INDEX
a=$NOMAD_ALLOC_DIR o=$PITCHPIPE_MARKS p= l= w= d=
for m in "$o/$n" "$a/data/$n" "$a"/../../*/alloc/data/"$n"; do
  if [ -f "$m" ]; then echo "pitchpipe: the work of this run is done ($m), it is not done again" >&2; exit 0; fi
done
case $c in
/*) ;;
*) for x in "$NOMAD_TASK_DIR/$c" "$NOMAD_TASK_DIR/../$c"; do if [ -f "$x" ]; then c=$x; break; fi; done ;;
esac
e="env --default-signal=INT,QUIT" i=INT q=QUIT
case $c in *=*|-*) e= ;; esac
if [ -z "$e" ] || ! $e true 2>/dev/null; then e= i=TERM q=TERM; fi
k() {
  w=1; if [ "$p" ]; then kill -"$1" "$p" 2>/dev/null || return 0; else l=$1; fi
  case $1 in TERM|INT|HUP|QUIT) d=$1 ;; esac
}
trap "k $i" INT; trap "k $q" QUIT
for s in TERM HUP USR1 USR2 WINCH CONT; do trap "k $s" "$s"; done
$e "$c" "$@" &
p=$!
if [ "$l" ]; then kill -"$l" "$p" 2>/dev/null; fi
w=; wait "$p"; s=$?
while [ "$w" ]; do
  w=; kill -0 "$p" 2>/dev/null; g=$?
  wait "$p"; t=$?
  if [ "$g" = 0 ] || [ "$t" != 127 ]; then s=$t; fi
done
if [ "$s" = 0 ] && [ "$d" ]; then
  echo "pitchpipe: ended after SIG$d, which may be before its work was done: no mark" >&2
elif [ "$s" = 0 ]; then
  if [ "$o" ]; then mkdir -p "$o"; fi
  for m in "$o" "$a/data"; do
    if [ "$m" ] && [ -d "$m" ]; then true >"$m/$n" || echo "pitchpipe: no mark in $m" >&2; fi
  done
fi
exit "$s"
