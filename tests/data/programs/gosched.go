// A goroutine that yields until a flag is set. Usage: gosched SECONDS
package main

import (
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
)

//go:noinline
func waitFor(flag *atomic.Bool) {
	for !flag.Load() {
		runtime.Gosched()
	}
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	var flag atomic.Bool
	go func() {
		time.Sleep(time.Duration(seconds * float64(time.Second)))
		flag.Store(true)
	}()
	waitFor(&flag)
}
