package broker_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/broker"
	"pitchpipe/driver/slurm/slurmctl"
	"pitchpipe/exporter/api/peercred/peercredtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	goleak.VerifyTestMain(m)
}

// raw sends one request over a connection that this thread opens.
func raw(socket, path, body string) (string, error) {
	addr, err := net.ResolveUnixAddr("unix", socket)
	if err != nil {
		return "", err
	}
	conn, err := net.DialUnix("unix", nil, addr)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://broker"+path, strings.NewReader(body))
	if err == nil {
		req.Close = true
		err = req.Write(conn)
	}
	answer, err2 := io.ReadAll(conn)
	return string(answer), errors.Join(err, err2, conn.Close())
}

func TestOnlyTheControllerIsAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *broker.Config) { c.Controllers = []uint32{65001} })
	if err := os.Chmod(filepath.Dir(r.cfg.Socket), 0o755); err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[uint32]string{65001: "200 OK", 65002: "only the site's controller may ask, and uid 65002 is not the account that it runs under"} {
		peercredtest.As(t, uid, func() {
			answer, err := raw(r.cfg.Socket, "/v1/signal", `{"job":"7","signal":"SIGUSR1"}`)
			if err != nil || !strings.Contains(answer, want) {
				t.Errorf("uid %d gets %q (%v), want %q", uid, answer, err, want)
			}
		})
	}
	if did := r.f.did(); len(did) != 1 {
		t.Errorf("done: %q, want one signal", did)
	}
}

func TestRequestsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, c := range []struct{ path, body, want string }{
		{"/v1/signal", "{", `"kind":"invalid"`},
		{"/v1/signal", `{"job":"7","signal":"` + strings.Repeat("x", 20<<10) + `"}`, "above 16384 bytes"},
		{"/v1/cancel", `{"job":"7"}`, "404"},
		{"/v1/update", `{"job":"7"}`, `"kind":"invalid"`},
	} {
		r.f.with(func(j *fakeJob) { j.state = "PENDING" })
		if answer, err := raw(r.cfg.Socket, c.path, c.body); err != nil || !strings.Contains(answer, c.want) {
			t.Errorf("%s %.40s: %q (%v), want %q", c.path, c.body, answer, err, c.want)
		}
	}
}

func TestWhatAClientMakesOfABrokerThatIsAway(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "pp-broker-") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	client := broker.NewClient(socket)
	if err := client.Do(t.Context(), slurmctl.Requeue, "7"); !errors.Is(err, driver.ErrTransient) {
		t.Errorf("no socket: %v, want %v", err, driver.ErrTransient)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // takes requests and dies
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 10))
			_ = conn.Close()
		}
	}()
	if err := client.Do(t.Context(), slurmctl.Requeue, "7"); !errors.Is(err, driver.ErrUnknown) {
		t.Errorf("a connection that broke: %v, want %v", err, driver.ErrUnknown)
	}
	if _, err := client.Script(t.Context(), "7"); !errors.Is(err, driver.ErrTransient) {
		t.Errorf("a connection that broke while reading: %v, want %v", err, driver.ErrTransient)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	<-ended
}

func TestABrokerThatDoesNotAnswerInTime(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "pp-broker-") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", socket) // no one accepts
	if err != nil {
		t.Fatal(err)
	}
	client := broker.NewClient(socket)
	client.Timeout = 2 * time.Second
	if err := client.Do(t.Context(), slurmctl.Requeue, "7"); !errors.Is(err, driver.ErrUnknown) {
		t.Errorf("%v, want %v", err, driver.ErrUnknown)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestEveryErrorComesThrough(t *testing.T) {
	t.Parallel()
	for _, want := range []error{
		driver.ErrNotFound, driver.ErrConflict, driver.ErrInvalid, driver.ErrUnsupported, driver.ErrDenied, driver.ErrUnknown, driver.ErrTransient,
	} {
		r := newRig(t, nil)
		r.f.mu.Lock()
		r.f.fail = want
		r.f.mu.Unlock()
		if err := r.client.Signal(t.Context(), "7", "SIGUSR1"); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

func TestTwoBrokersDoNotShareAState(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	second, err := broker.New(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("the second ends with %v, want that another has the state", err)
	}
	if err := r.client.Signal(t.Context(), "7", "SIGUSR1"); err != nil {
		t.Errorf("the first does not answer any more: %v", err)
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := broker.New(broker.Config{}); !errors.Is(err, broker.ErrConfig) {
		t.Errorf("%v, want %v", err, broker.ErrConfig)
	}
	r := newRig(t, nil)
	r.cfg.Dir = "state"
	if _, err := broker.New(r.cfg); !errors.Is(err, broker.ErrConfig) {
		t.Errorf("a relative path: %v, want %v", err, broker.ErrConfig)
	}
}

func TestARequestThatBeganIsFinished(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	began, goOn := make(chan struct{}), make(chan struct{})
	r.f.mu.Lock()
	r.f.pause = func() { close(began); <-goOn }
	r.f.mu.Unlock()
	answer := make(chan error, 1)
	go func() { answer <- r.client.Signal(context.WithoutCancel(t.Context()), "7", "SIGUSR1") }()
	<-began
	stopped := make(chan struct{})
	go func() { defer close(stopped); r.stop() }()
	select {
	case <-stopped:
		t.Error("the broker ended before the request")
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	if err := <-answer; err != nil {
		t.Errorf("the request: %v", err)
	}
	<-stopped
}

// TestNoTextOfAnOwnerMakesAJobAccepted writes into everything that users write.
func TestNoTextOfAnOwnerMakesAJobAccepted(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.mu.Lock()
	whole := r.f.job
	r.f.mu.Unlock()
	// A record of the job's own number whose owner wrote all of it, and the begin of one
	// that takes what scontrol prints after that.
	whole.state, whole.admin = "RUNNING", accepted
	const forged = "FORGED"
	forge := func(text, folder string) string {
		r := whole
		r.folder = folder
		return strings.ReplaceAll(text, forged, "\n"+strings.TrimSpace(r.record("7"))+"\nJobId=9 JobName=x")
	}
	piece := rapid.SampledFrom([]string{
		forged,
		"x", " ", "|", "\n", "7|", "7|0|PENDING|9|9M|UNLIMITED|0|7|N/A|main|a|b|/", "/home/alice", " AdminComment=" + accepted, "AdminComment=" + accepted, " WorkDir=/home/alice",
		" MinMemoryCPU=100M", " MinMemoryNode=100M", " CPUs/Task=64", " NumCPUs=64", " MinCPUsNode=1", " Comment=", " StdErr=/o", "JobId=7 ", "\nJobId=7 ", "pitchpipe:1:-",
	})
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 4).Draw(t, "pieces"), "") })
	rapid.Check(t, func(rt *rapid.T) {
		name, folder, comment := text.Draw(rt, "name"), "/"+text.Draw(rt, "folder"), text.Draw(rt, "comment")
		folder = forge(folder, "/home/alice")
		name, comment = forge(name, folder), forge(comment, folder)
		r.f.with(func(j *fakeJob) { j.admin, j.name, j.folder, j.comment, j.state = "", name, folder, comment, "RUNNING" })
		if err := r.client.Signal(t.Context(), "7", "SIGUSR1"); err == nil {
			rt.Fatalf("accepted: name %q, folder %q, comment %q", name, folder, comment)
		}
		r.f.with(func(j *fakeJob) { j.admin, j.state = accepted, "PENDING" })
		for _, u := range []slurmctl.Update{size(5, 0, 0), size(0, 101, 0), size(0, 0, 61)} {
			if err := r.client.Update(t.Context(), "7", u); err == nil {
				rt.Fatalf("raised: name %q, folder %q, comment %q", name, folder, comment)
			}
		}
	})
}

const limited = `Current Association Manager state
Association Records
ClusterName=c Account=root UserName= Partition= ID=1 ParentAccount= GrpWall=N(0.00) GrpTRES=cpu=N(0) GrpTRESMins= GrpTRESRunMins= MaxWallPJ= MaxTRESPJ= MaxTRESPN= MaxTRESMinsPJ=
ClusterName=c Account=physics UserName= Partition= ID=2 ParentAccount=root(1) GrpWall=N(0.00) GrpTRES=cpu=N(0) GrpTRESMins= GrpTRESRunMins= MaxWallPJ= MaxTRESPJ= MaxTRESPN= MaxTRESMinsPJ=
ClusterName=c Account=physics UserName=alice(7) Partition= ID=3 ParentAccount= GrpWall=N(0.00) GrpTRES=cpu=6(3) GrpTRESMins= GrpTRESRunMins= MaxWallPJ= MaxTRESPJ= MaxTRESPN= MaxTRESMinsPJ=
QOS Records
QOS=normal(1) GrpWall=N(0.00) GrpTRES=cpu=N(0) GrpTRESMins= GrpTRESRunMins= MaxWallPJ= MaxTRESPJ= MaxTRESPN= MaxTRESMinsPJ= MinTRESPJ= Account Limits= physics={MaxTRESPA=} User Limits= 7={MaxTRESPU=}
`

func TestLimitsThatSlurmDoesNotAskOfAnOperator(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		setup func(*fake)
		ours  bool // it ran, and we put it back
		cores int
		want  error
		words string
	}{
		{"within them", func(f *fake) { f.assoc = limited }, false, 3, nil, ""},
		{"above them", func(f *fake) { f.assoc = limited }, false, 5, driver.ErrDenied, "the association of user alice in account physics has GrpTRES=cpu 6, of which other jobs use 3, and the job would add 5"},
		{"smaller, and still above", func(f *fake) { f.assoc, f.job.cores = limited, 8 }, false, 4, driver.ErrDenied, "GrpTRES=cpu 6"},
		{"smaller, of a job that asked for more CPUs of its node", func(f *fake) { f.assoc, f.job.least = limited, 4 }, false, 2, nil, ""},
		{"larger where the limits cannot be read", func(*fake) {}, true, 5, driver.ErrTransient, "cannot be read"},
		{"smaller where the limits cannot be read, of a job that waits for its first start", func(*fake) {}, false, 1, driver.ErrTransient, "cannot be read"},
		{"smaller where the limits cannot be read, of a job that just ran", func(*fake) {}, true, 1, nil, ""},
		{"output that is not known", func(f *fake) { f.assoc = "what is this\n" }, false, 5, driver.ErrTransient, "cannot be read"},
		{"a user without an association", func(f *fake) { f.assoc = strings.ReplaceAll(limited, "alice(7)", "bob(8)") }, false, 5, driver.ErrDenied, "no association"},
		{"no limits are enforced", func(f *fake) { f.config = "AccountingStorageEnforce = associations\n" }, false, 5, nil, ""},
		{"the configuration does not say what is enforced", func(f *fake) { f.config = "" }, false, 5, driver.ErrTransient, "what is enforced"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(c *broker.Config) { c.Above = []string{"main"} })
			r.f.mu.Lock()
			r.f.config = "AccountingStorageEnforce = associations,limits,qos\n"
			c.setup(r.f)
			r.f.mu.Unlock()
			if c.ours {
				r.waits(t)
			} else {
				r.f.with(func(j *fakeJob) { j.state = "PENDING" })
			}
			err := r.client.Update(t.Context(), "7", size(c.cores, 0, 0))
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.words) {
				t.Errorf("%v, want %v with the words %q", err, c.want, c.words)
			}
		})
	}
}
