run capture onbeat capture -q -o bundle
sendtree bundle bundle
