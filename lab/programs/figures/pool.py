from multiprocessing import Pool
def work(n):
    return sum(i * i for i in range(n))
if __name__ == '__main__':
    with Pool(4) as pool:
        print(sum(pool.map(work, [20000] * 400)))
