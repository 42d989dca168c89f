package main
import "sync"
func main() {
	var group sync.WaitGroup
	for k := 0; k < 2; k++ {
		group.Add(1)
		go func() {
			defer group.Done()
			table := make(map[int]int)
			for i := 0; i < 600000; i++ { table[i*7919%50021] += i }
		}()
	}
	group.Wait()
}
