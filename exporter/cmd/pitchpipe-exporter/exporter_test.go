package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/progress"
	"pitchpipe/exporter/hostfs"
)

// The test binary is its own job: with this variable it works through epochs, and
// its listener reports them to the socket that the variable names.
const jobSocket = "PITCHPIPE_TEST_JOB_SOCKET"

func TestMain(m *testing.M) {
	for _, role := range []struct {
		variable string
		play     func(string) error
	}{{confinedRole, confine}, {trespasserRole, trespass}, {stepUser, stepDaemon}, {reporter, reportOnce}, {jobSocket, work}, {recyclerRole, recycle}, {leaverRole, leave}, {exporterRole, beExporter}} {
		value := os.Getenv(role.variable)
		if value == "" {
			continue
		}
		if err := role.play(value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const epochs = 6

// Computing of one epoch, in CPU time: on the clock it may take any time.
const epochWork = 80 * time.Millisecond

func used() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// work prints an epoch's line after each piece of computing, and follows its own
// output as the listener inside a job does.
func work(socket string) error {
	var start [1]byte
	if _, err := os.Stdin.Read(start[:]); err != nil { // until it is in its cgroup
		return err
	}
	out, err := os.CreateTemp("", "pitchpipe-job-*.log")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(out.Name()) }()
	client := api.NewClient(socket)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- progress.Follow(ctx, progress.Config{
			Path: out.Name(), Pattern: regexp.MustCompile(`epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+)`),
			Drain: time.Minute, // only a machine that is busy takes it
		}, client.Report)
	}()
	memory := make([]byte, 64<<20)
	for epoch := 1; epoch <= epochs; epoch++ {
		began, err := used()
		if err != nil {
			return err
		}
		for now := began; now < began+epochWork; {
			for i := 0; i < len(memory); i += 256 {
				memory[i] += byte(i)
			}
			if now, err = used(); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(out, "epoch %d/%d loss %g\n", epoch, epochs, 1/float64(epoch)); err != nil {
			return err
		}
	}
	cancel()
	return <-done
}

// exporter runs the real command in this process on a temporary socket.
func exporter(t *testing.T, more ...string) (client *api.Client, socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	return exporterOn(t, socket, more...), socket
}

// exporterOn is exporter with a socket of the caller's.
func exporterOn(t *testing.T, socket string, more ...string) *api.Client {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := command()
	cmd.SetArgs(append([]string{
		"--socket", socket, "--web.listen-address=", "--sampling.interval=200ms", "--sampling.discover=20ms", "--log.level=warn",
	}, more...))
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	client := api.NewClient(socket)
	t.Cleanup(func() {
		client.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		_, err := client.Node(t.Context())
		if err == nil && ticks(t, socket) >= 3 { // energy is known from the second one on
			return client
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// leaves makes the job's cgroup in every hierarchy where a job has one, or skips
// and says why.
func leaves(t *testing.T, name string) (dirs []string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making cgroups needs root")
	}
	for _, h := range (hostfs.Root{}).Hierarchies() {
		if !h.V2 && !h.Has("memory") {
			continue
		}
		parent := filepath.Join(h.Dir, "pitchpipe")
		dir := filepath.Join(parent, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Skipf("cannot make a cgroup: %v", err)
		}
		t.Cleanup(func() {
			_ = os.Remove(dir)
			_ = os.Remove(parent) // stays where others' jobs are in it
		})
		dirs = append(dirs, dir)
	}
	if len(dirs) == 0 {
		t.Skip("no cgroup hierarchy")
	}
	return dirs
}

func start(t *testing.T, socket string, env ...string) (pid int, wait func() error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(append(os.Environ(), jobSocket+"="+socket), env...)
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c.Process.Pid, func() error {
		if _, err := io.WriteString(stdin, "\n"); err != nil {
			return err
		}
		return c.Wait()
	}
}

func ended(t *testing.T, client *api.Client, id string, attempt int) api.Window {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		w, err := client.Window(t.Context(), id, attempt, 0)
		if err == nil && w.Job.Ended {
			return w
		}
		if time.Now().After(deadline) {
			t.Fatalf("the job did not end: %+v, %v", w.Job, err)
		}
	}
}

func check(t *testing.T, w api.Window, columns ...string) {
	t.Helper()
	epoch := 0
	var last api.Sample
	for _, s := range w.Samples {
		if s.Mark != nil {
			epoch++
			if s.Mark.Epoch != epoch || s.Mark.Total != epochs || s.Mark.Loss == nil || s.Mark.Time.After(s.Time) {
				t.Errorf("mark %+v at %v, want epoch %d", s.Mark, s.Time, epoch)
			}
			for _, column := range columns {
				if _, ok := s.Values[column]; !ok {
					t.Errorf("epoch %d has no %s: %v", epoch, column, s.Values)
				}
			}
		}
		for _, column := range []string{api.ColCPUSeconds, api.ColJoules, api.ColMinorFaults, api.ColReadChars} {
			// What could not be read as the cgroup went away is missing, and not 0.
			if v, ok := s.Values[column]; ok && v < last.Values[column] {
				t.Errorf("%s went from %v to %v", column, last.Values[column], v)
			}
		}
		if len(s.Values) > 0 {
			last = s
		}
	}
	if epoch != epochs {
		t.Errorf("%d marks, want %d", epoch, epochs)
	}
	// The last mark's snapshot has all epochs but their ends' ticks.
	if cpu := last.Values[api.ColCPUSeconds]; cpu < 0.8*epochs*epochWork.Seconds() || cpu > 60 {
		t.Errorf("%v CPU seconds", cpu)
	}
	if joules := last.Values[api.ColJoules]; joules <= 0 || w.Source == "" {
		t.Errorf("%v J from %q", joules, w.Source)
	}
}

func TestAJobInItsCgroupIsSampledWithItsMarks(t *testing.T) {
	client, socket := exporter(t)
	id := fmt.Sprintf("e2e-%d", os.Getpid())
	dirs := leaves(t, id+".3")
	pid, wait := start(t, socket)
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
	}
	w := ended(t, client, id, 3)
	columns := []string{api.ColCPUSeconds, api.ColUserSeconds, api.ColJoules, api.ColVoluntary, api.ColReadChars, api.ColThreads, api.ColNodeBusy, api.ColMinorFaults}
	n, err := client.Node(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n.Schema != api.SchemaAccounting {
		columns = append(columns, api.ColTaskClock, api.ColContextSwitch, api.ColPerfEnabled)
	}
	if w.Schema != n.Schema {
		t.Errorf("the job's schema is %s, the node's %s", w.Schema, n.Schema)
	}
	check(t, w, columns...)
	last := w.Samples[len(w.Samples)-1].Values
	if clock, ok := last[api.ColTaskClock]; ok && (clock < 0.8*last[api.ColCPUSeconds]-0.3 || clock > 1.2*last[api.ColCPUSeconds]+0.05) {
		t.Errorf("task clock %v s, CPU time %v s", clock, last[api.ColCPUSeconds])
	}
	if rss := last[api.ColPeak]; rss < 64<<20 {
		t.Errorf("peak %v bytes, the job touched 64 MiB", rss)
	}
	text := scrape(t, socket)
	if want := fmt.Sprintf("pitchpipe_job_cpu_seconds_total{manager=\"local\",job_id=%q,attempt=\"3\"} ", id); !strings.Contains(text, want) {
		t.Errorf("no %s in the metrics", want)
	}
}

func TestAJobWithoutACgroupIsFoundByItsEnvironment(t *testing.T) {
	client, socket := exporter(t)
	id := fmt.Sprintf("env-%d", os.Getpid())
	_, wait := start(t, socket, "PITCHPIPE_JOB_ID="+id, "PITCHPIPE_ATTEMPT=2")
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	w := ended(t, client, id, 2)
	if w.Schema != api.SchemaAccounting || w.Job.Cgroup != "" || w.Job.UID != uint32(os.Getuid()) {
		t.Errorf("window of %+v, schema %s", w.Job, w.Schema)
	}
	check(t, w, api.ColCPUSeconds, api.ColVoluntary, api.ColReadChars, api.ColRSS, api.ColMinorFaults)
}

func TestAReportFromOutsideEveryJobIsDenied(t *testing.T) {
	client, _ := exporter(t)
	if err := client.Report(t.Context(), api.Report{Epoch: 1}); !errors.Is(err, api.ErrDenied) {
		t.Errorf("got %v, want %v", err, api.ErrDenied)
	}
}

func TestAJobReportsFromItsShellWithoutAListener(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("no curl")
	}
	client, socket := exporter(t)
	id := fmt.Sprintf("curl-%d", os.Getpid())
	// As the page of exporter/api has it.
	script := `for e in 1 2 3; do ` + curl + ` -sf --unix-socket "$PITCHPIPE_EXPORTER" -d "epoch=$e/3 loss=0.$e" http://exporter/v1/progress || exit 1; done`
	c := exec.CommandContext(t.Context(), "sh", "-c", script)
	c.Env = append(os.Environ(), api.EnvSocket+"="+socket, "PITCHPIPE_JOB_ID="+id)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w := ended(t, client, id, 1)
	var got []string
	for _, s := range w.Samples {
		if s.Mark != nil {
			got = append(got, fmt.Sprintf("%d/%d %v", s.Mark.Epoch, s.Mark.Total, *s.Mark.Loss))
		}
	}
	if diff := cmp.Diff([]string{"1/3 0.1", "2/3 0.2", "3/3 0.3"}, got); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	outside := exec.CommandContext(t.Context(), "sh", "-c", script)
	outside.Env = append(os.Environ(), api.EnvSocket+"="+socket)
	if out, err := outside.CombinedOutput(); err == nil {
		t.Errorf("a report from outside every job was taken: %s", out)
	}
}

func TestANodeOnAGeneratedTreeSaysWhatItLacks(t *testing.T) {
	dir := plantNode(t)
	client, _ := exporter(t, "--path.procfs", filepath.Join(dir, "proc"), "--path.sysfs", filepath.Join(dir, "sys"))
	n, err := client.Node(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n.Cores != 1 || n.EnergySource != "rapl" || n.Schema != api.SchemaAccounting || n.MachineKind != "unknown×1" {
		t.Errorf("node %+v", n)
	}
	got := map[string]api.Support{}
	for _, s := range n.Sources {
		got[s.Name] = s.Support
		if s.Support != api.Supported && s.Reason == "" {
			t.Errorf("%s has no reason", s.Name)
		}
	}
	for name, want := range map[string]api.Support{
		"energy/rapl": api.Supported, "attrib/cgroup": api.Unsupported, "cgroup/cpu": api.Unsupported,
		"perf/task-clock": api.Unsupported, "node/cpu": api.Supported,
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

func ticks(t *testing.T, socket string) int {
	t.Helper()
	const name = "\npitchpipe_exporter_ticks_total "
	_, rest, ok := strings.Cut(scrape(t, socket), name)
	if !ok {
		t.Fatalf("no %q in the metrics", name)
	}
	text, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func scrape(t *testing.T, socket string) string {
	t.Helper()
	c := exporterHTTP(socket)
	defer c.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://exporter/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func exporterHTTP(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
}
