// Package api is how others talk to the exporter: the wire types, the paths, and
// a client. It is the only exporter package that the controller imports.
//
// The input is progress reports from inside jobs; the output is the jobs of a node, their
// samples and marks, and what the node can measure. Everything is JSON over HTTP on a Unix
// socket whose peer credentials name the caller: users see their own jobs, root and the
// exporter's readers see all. Other machines get the same over TLS with certificates on both
// sides. Callers who see all jobs may also report on behalf of a job that they name
// (PathReport). The package never measures anything.
//
// # Reports without a listener
//
// A job whose stanza says progress { report = true } reports by itself that an epoch
// ended. It finds the socket in PITCHPIPE_EXPORTER and posts one line, which is
// either JSON, as Report has it, or words:
//
//	epoch=3 total=10 loss=0.41 quality=0.93
//
// Only epoch is needed, and epochs count from 1; epoch=3/10 includes the total. Loss and
// quality that are not finite numbers are left out. From a shell:
//
//	curl -sf --unix-socket "$PITCHPIPE_EXPORTER" -d "epoch=$e/$n loss=$loss" http://exporter/v1/progress
//
// and from Python:
//
//	s = socket.socket(socket.AF_UNIX); s.connect(os.environ["PITCHPIPE_EXPORTER"])
//	line = f"epoch={e}/{n} loss={loss}"
//	s.sendall(f"POST /v1/progress HTTP/1.0\r\nContent-Length: {len(line)}\r\n\r\n{line}".encode()); s.recv(99)
//
// The answer comes when the exporter has taken the counters of that moment, so the caller
// should wait for it; 204 means that it has, 403 that the caller is in no job. A report
// never names its job: it is the one that the caller runs in, by its cgroup, by Slurm's step
// daemon above it, or by its environment where that is believed.
package api
