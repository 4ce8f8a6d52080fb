import{a as o}from"./chunk-4PYR4FWI.js";import"./chunk-BPTOFQP6.js";import"./chunk-YIFXMPX3.js";import"./chunk-DGV6HIMO.js";import"./chunk-BTJADNQE.js";export{o as Preferences};
