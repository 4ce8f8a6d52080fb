import{a as o}from"./chunk-5CQ7KJEQ.js";import"./chunk-JUPH6HNI.js";import"./chunk-KAGEZNU6.js";import"./chunk-NRXRA7CT.js";export{o as Privacy};
