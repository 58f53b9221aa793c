package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// block returns the indented lines of page that follow the line after.
func block(t *testing.T, page, after string) string {
	t.Helper()
	_, rest, _ := strings.Cut(page, "\n"+after+"\n\n")
	var text []string
	for line := range strings.SplitSeq(rest, "\n") {
		if line != "" && !strings.HasPrefix(line, "    ") {
			break
		}
		text = append(text, strings.TrimPrefix(line, "    "))
	}
	if len(text) == 0 {
		t.Fatalf("the page has no block after %q", after)
	}
	return strings.TrimSpace(strings.Join(text, "\n"))
}

// alone runs commands in dir and in their own namespaces, since they use the default paths and ports. It returns
// what they write to descriptor 3.
func alone(t *testing.T, progs programs, dir, commands string) string {
	t.Helper()
	if err := exec.CommandContext(t.Context(), "unshare", "--mount", "--net", "true").Run(); err != nil {
		t.Skipf("namespaces of its own: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--net", "bash", "-eu", "-c", `
		ip link set lo up
		mkdir -p /var/lib/pitchpipe
		mount -t tmpfs none /var/lib/pitchpipe
		mount -t tmpfs none /run
		trap 'kill $(jobs -p); wait' EXIT
		exec 3>&1 >log 2>&1
		`+commands)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "PATH=" + filepath.Dir(progs.path("pitchpipe")) + ":" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		t.Fatalf("%v\n%s\n%s", err, out, log)
	}
	return string(out)
}

// The commands of the README's first tuned job run unchanged; only the job is shorter. A job of this
// length on a shared machine may end untuned, so that the form of the answer is compared.
func TestTheFirstTunedJobOfTheReadmeRuns(t *testing.T) {
	t.Parallel()
	progs := build(t)
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := block(t, string(text), "A first tuned job, step by step:")
	const first = "make build && export PATH=$PWD/bin:$PATH\n"
	if !strings.HasPrefix(commands, first) || !strings.Contains(commands, "EPOCHS=200") {
		t.Fatalf("the commands begin with %q, want %q and EPOCHS=200", commands, first)
	}
	commands = strings.Replace(strings.TrimPrefix(commands, first), "EPOCHS=200", "EPOCHS=8", 1)
	dir := t.TempDir()
	jobspecs, err := filepath.Abs("../../jobspecs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(jobspecs, filepath.Join(dir, "jobspecs")); err != nil {
		t.Fatal(err)
	}
	out := alone(t, progs, dir, strings.TrimSuffix(commands, "pitchpipe explain local-1")+`
		pitchpipe explain local-1 >&3`)
	// The first words of a row are the same for every job.
	words := regexp.MustCompile(`(?m)^(verdict  succeeded|effect  |next  |RESOURCE  USED  .*REQUESTED  .*SHARE|memory  .* MiB  .* MiB  .* %|power  .* W \(modelled\))`)
	want := len(words.FindAllString(block(t, string(text), "`pack` asks for two cores and uses one. The last command prints:"), -1))
	if got := len(words.FindAllString(out, -1)); got != want || want != 6 {
		t.Errorf("%d of %d rows have the form that README.md shows:\n%s", got, want, out)
	}
}
