import{a as o}from"./chunk-ARLPWKVM.js";import"./chunk-RWCJYZIU.js";import"./chunk-CF4E6J5H.js";import"./chunk-IPXS7XWN.js";export{o as Privacy};
