package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
)

// With this variable the test binary confines itself as systemd does by the unit, and then
// executes itself again in another role.
const confinedRole = "PITCHPIPE_TEST_CONFINED"

// cell is what the unit confines the exporter to.
type cell struct {
	Calls        []int // system calls that are allowed
	Capabilities []int
}

// unitCell reads the unit. Its groups of system calls are as this machine's systemd has them.
func unitCell(t *testing.T) cell {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be confined as the unit confines root")
	}
	unit := settings(t, "pitchpipe-exporter.service")
	if len(unit["ReadOnlyPaths"]) != 1 || unit["ReadOnlyPaths"][0] != "/proc" {
		t.Errorf("ReadOnlyPaths is %q, want /proc: CAP_SYS_PTRACE opens /proc/PID/mem", unit["ReadOnlyPaths"])
	}
	allowed := map[string]bool{}
	for _, line := range unit["SystemCallFilter"] {
		line, denied := strings.CutPrefix(line, "~")
		for name := range strings.FieldsSeq(line) {
			expand(t, name, func(call string) { allowed[call] = !denied })
		}
	}
	var out cell
	for name, number := range callNumbers(t) {
		if allowed[name] {
			out.Calls = append(out.Calls, number)
		}
	}
	numbers := map[string]int{"CAP_PERFMON": unix.CAP_PERFMON, "CAP_SYS_PTRACE": unix.CAP_SYS_PTRACE, "CAP_DAC_READ_SEARCH": unix.CAP_DAC_READ_SEARCH}
	for name := range strings.FieldsSeq(strings.Join(unit["CapabilityBoundingSet"], " ")) {
		number, known := numbers[name]
		if !known {
			t.Errorf("the unit keeps %s, and no test says what for", name)
		}
		out.Capabilities = append(out.Capabilities, number)
	}
	return out
}

func expand(t *testing.T, name string, each func(string)) {
	t.Helper()
	if !strings.HasPrefix(name, "@") {
		each(name)
		return
	}
	list, err := exec.CommandContext(t.Context(), "systemd-analyze", "syscall-filter", name).Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("no systemd that says what is in ", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		if line = strings.TrimSpace(line); line != "" && line != name && !strings.HasPrefix(line, "#") {
			expand(t, line, each)
		}
	}
}

// callNumbers are the numbers of system calls by their names on this machine.
func callNumbers(t *testing.T) map[string]int {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	if err != nil {
		t.Skip("no source of golang.org/x/sys that names the system calls: ", err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "zsysnum_linux_"+runtime.GOARCH+".go"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, m := range regexp.MustCompile(`SYS_(\w+)\s+= (\d+)`).FindAllStringSubmatch(string(text), -1) {
		if out[strings.ToLower(m[1])], err = strconv.Atoi(m[2]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// confine is the child's part.
func confine(text string) error {
	var c cell
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	runtime.LockOSThread()
	// ReadOnlyPaths=/proc.
	if err := errors.Join(
		unix.Unshare(unix.CLONE_NEWNS),
		unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""),
		unix.Mount("/proc", "/proc", "", unix.MS_BIND|unix.MS_REC, ""),
		unix.Mount("", "/proc", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""),
	); err != nil {
		return fmt.Errorf("/proc read-only: %w", err)
	}
	keep := map[int]bool{}
	for _, n := range c.Capabilities {
		keep[n] = true
	}
	for n := range unix.CAP_LAST_CAP + 1 {
		if keep[n] {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(n), 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("dropping capability %d: %w", n, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the call's number
	for _, n := range c.Calls {
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(n), Jf: 1}, //nolint:gosec // a call's number
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)})
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}                                                    //nolint:gosec // a few hundred
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); e != 0 { //nolint:gosec // that is how it is called
		return fmt.Errorf("filter: %w", e)
	}
	if err := os.Unsetenv(confinedRole); err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}

// command is a command of the test binary in a role within the cell.
func (c cell) command(t *testing.T, role, value string) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	out := exec.CommandContext(t.Context(), os.Args[0])
	out.Env = append(os.Environ(), confinedRole+"="+string(text), role+"="+value)
	out.Stderr = os.Stderr
	return out
}

// trespasserRole tries to do to the process of that number what CAP_SYS_PTRACE would allow.
const trespasserRole = "PITCHPIPE_TEST_TRESPASSER"

func trespass(victim string) error {
	pid, err := strconv.Atoi(victim)
	if err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	here := unix.Iovec{Base: new(byte), Len: 1}
	there := unix.RemoteIovec{Base: 1 << 20, Len: 1}
	_, read := unix.ProcessVMReadv(pid, []unix.Iovec{here}, []unix.RemoteIovec{there}, 0)
	_, write := unix.ProcessVMWritev(pid, []unix.Iovec{here}, []unix.RemoteIovec{there}, 0)
	_, steal := unix.PidfdGetfd(fd, 0, 0)
	_, _, bpf := unix.Syscall(unix.SYS_BPF, 0, 0, 0)
	_, _, keys := unix.Syscall(unix.SYS_KEYCTL, 0, ^uintptr(0), 0)
	_, memory := os.OpenFile(filepath.Join("/proc", victim, "mem"), os.O_RDWR, 0)
	for call, got := range map[string]error{
		"ptrace": unix.PtraceSeize(pid), "process_vm_readv": read, "process_vm_writev": write, "pidfd_getfd": steal,
		"mount": unix.Mount("none", "/tmp", "tmpfs", 0, ""), "bpf": bpf, "keyctl": keys, "setuid": unix.Setresuid(1, 1, 1),
	} {
		if !errors.Is(got, unix.EPERM) {
			err = errors.Join(err, fmt.Errorf("%s: %w, want %w", call, outcome(got), unix.EPERM))
		}
	}
	if !errors.Is(memory, unix.EROFS) {
		err = errors.Join(err, fmt.Errorf("writing to another's memory: %w, want %w", outcome(memory), unix.EROFS))
	}
	return err
}

var errAllowed = errors.New("it was allowed")

func outcome(err error) error {
	if e, ok := errors.AsType[syscall.Errno](err); err == nil || ok && e == 0 {
		return errAllowed
	}
	return err
}

func TestTheUnitKeepsTheExporterOutOfOtherProcesses(t *testing.T) {
	t.Parallel()
	c := unitCell(t)
	victim := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
	if err := c.command(t, trespasserRole, strconv.Itoa(victim.Process.Pid)).Run(); err != nil {
		t.Error(err)
	}
}

// sees is what an exporter in a cell sees of a job of another user's.
type sees struct{ Job, IO, Perf, Rapl, GPU, Mark bool }

func TestWithinItsUnitTheExporterSeesWhatItsCapabilitiesAreFor(t *testing.T) {
	c := unitCell(t)
	perf := func() bool {
		client, _ := exporter(t)
		n, err := client.Node(t.Context())
		return err == nil && n.Schema != api.SchemaAccounting
	}()
	for name, run := range map[string]struct {
		without int
		want    sees
	}{ // since Linux 6.14 CAP_PERFMON shows environments too, by which jobs are found
		"with all of them it sees everything":                                    {-1, sees{true, true, perf, true, true, true}},
		"without CAP_PERFMON it counts no events":                                {unix.CAP_PERFMON, sees{true, true, false, true, true, true}},
		"without CAP_SYS_PTRACE it sees no IO of others":                         {unix.CAP_SYS_PTRACE, sees{Perf: perf, Rapl: true, GPU: true}},
		"without CAP_DAC_READ_SEARCH it reads no file that is its owner's alone": {unix.CAP_DAC_READ_SEARCH, sees{Perf: perf, Rapl: true, GPU: true}},
	} {
		t.Run(name, func(t *testing.T) {
			less := cell{Calls: c.Calls}
			for _, n := range c.Capabilities {
				if n != run.without {
					less.Capabilities = append(less.Capabilities, n)
				}
			}
			var got sees
			for range 3 { // on a busy machine a job of two epochs may be met while it begins or ends
				if got = less.look(t); run.without == unix.CAP_SYS_PTRACE { // see above
					got.Job, got.Mark = run.want.Job, run.want.Mark
				}
				if got == run.want {
					return
				}
			}
			t.Errorf("sees %+v, want %+v", got, run.want)
		})
	}
}

// gpuHelper is pitchpipe-gpu with a library made for tests, where that can be built, else a
// script that writes what it would.
func gpuHelper(t *testing.T, dir string) string {
	t.Helper()
	script, library, program := fmt.Appendf(nil, helperScript, os.Getpid()), filepath.Join(dir, "libfake.so"), filepath.Join(dir, "pitchpipe-gpu")
	if _, err := exec.LookPath("gcc"); err == nil {
		for _, build := range [][]string{
			{"gcc", "-shared", "-fPIC", "-o", library, filepath.Join("..", "pitchpipe-gpu", "testdata", "fake.c")},
			{"go", "build", "-o", program, "../pitchpipe-gpu"},
		} {
			if out, err := exec.CommandContext(t.Context(), build[0], build[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		script = fmt.Appendf(nil, "#!/bin/sh\nexec %s --library %s \"$@\"\n", program, library)
	}
	helper := filepath.Join(dir, "helper")
	if err := os.WriteFile(helper, script, 0o700); err != nil { //nolint:gosec // it is to be executed
		t.Fatal(err)
	}
	return helper
}

// look runs an exporter in the cell with every collector, and a job of nobody's.
func (c cell) look(t *testing.T) (out sees) {
	t.Helper()
	const nobody = 65534
	dir := t.TempDir()
	root := plantNode(t)
	helper, socket, program := gpuHelper(t, dir), filepath.Join(dir, "s"), filepath.Join(dir, "job")
	data, err := os.ReadFile(os.Args[0])
	// The node is this machine with a RAPL counter.
	for _, path := range []string{"devices", "bus"} {
		err = errors.Join(err, os.Symlink(filepath.Join("/sys", path), filepath.Join(root, "sys", path)))
	}
	if err == nil {
		err = os.WriteFile(program, data, 0o755) //nolint:gosec // another user executes it
	}
	for at := dir; err == nil && at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		err = os.Chmod(at, 0o755) //nolint:gosec // another user comes this way
	}
	if err != nil {
		t.Fatal(err)
	}
	daemon := c.command(t, exporterRole, strings.Join([]string{
		"--socket", socket, "--web.listen-address=", "--path.sysfs", filepath.Join(root, "sys"), "--path.cgroupfs=/sys/fs/cgroup",
		"--gpu.helper", helper, "--attrib.environ=any", "--state.file", filepath.Join(dir, "state.json"),
		"--sampling.interval=100ms", "--sampling.discover=20ms", "--log.level=error",
	}, "\n"))
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	client := api.NewClient(socket)
	t.Cleanup(func() {
		client.Close()
		_ = daemon.Process.Kill()
		_ = daemon.Wait() // it was killed
	})
	eventually(t, "it samples", func() bool {
		n, err := client.Node(t.Context())
		if err != nil {
			return false
		}
		out.Perf = n.Schema != api.SchemaAccounting
		for _, s := range n.Sources {
			out.Rapl = out.Rapl || s.Name == "energy/rapl" && s.Support == api.Supported
			out.GPU = out.GPU || s.Name == "gpu/nvidia" && s.Support == api.Supported
		}
		return out.GPU && ticks(t, socket) >= 3
	})
	if page := scrape(t, socket); !strings.Contains(page, "pitchpipe_") {
		t.Errorf("its metrics are %q", page)
	}
	id := fmt.Sprintf("confined-%d", os.Getpid())
	job := exec.CommandContext(t.Context(), program)
	job.Env = append(os.Environ(), jobSocket+"="+socket, "PITCHPIPE_JOB_ID="+id)
	job.Stdin = strings.NewReader("\n")
	job.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if text, err := job.CombinedOutput(); err != nil { // a report of what is no job is refused
		t.Logf("the job: %v: %s", err, text)
	}
	w, err := client.Window(t.Context(), id, 1, 0)
	out.Job = err == nil && w.Job.UID == nobody
	for _, s := range w.Samples {
		_, read := s.Values[api.ColReadChars]
		out.IO, out.Mark = out.IO || read, out.Mark || s.Mark != nil
	}
	return out
}
