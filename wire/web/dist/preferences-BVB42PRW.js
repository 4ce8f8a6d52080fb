import{a as o}from"./chunk-DSHF67R6.js";import"./chunk-RWCJYZIU.js";import"./chunk-CF4E6J5H.js";import"./chunk-IPXS7XWN.js";export{o as Preferences};
