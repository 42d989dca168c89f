// Threads that write down their mask: goroutines that keep a thread each, and
// end with it. Then the number of CPUs that Go's scheduler uses.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"unsafe"
)

func own() string {
	var words [16]uint64
	length, _, failed := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0,
		unsafe.Sizeof(words), uintptr(unsafe.Pointer(&words)))
	if failed != 0 {
		return failed.Error()
	}
	text := ""
	for word := int(length)/8 - 1; word >= 0; word-- {
		text += fmt.Sprintf("%016x", words[word])
	}
	return text
}

func main() {
	many, err := strconv.Atoi(os.Args[1])
	if err != nil {
		os.Exit(2)
	}
	runtime.LockOSThread()
	masks := make([]string, many+1)
	masks[0] = own()
	var ready, done sync.WaitGroup
	ready.Add(many)
	done.Add(many)
	for number := 1; number <= many; number++ {
		go func() {
			runtime.LockOSThread()
			masks[number] = own()
			ready.Done()
			ready.Wait()
			done.Done()
		}()
	}
	done.Wait()
	for number, mask := range masks {
		fmt.Println(number, mask)
	}
	fmt.Println("processors", runtime.GOMAXPROCS(0))
}
