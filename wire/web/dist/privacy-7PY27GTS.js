import{a as o}from"./chunk-MUTXJF2U.js";import"./chunk-OJP6EBS7.js";import"./chunk-LZLB66BT.js";import"./chunk-M6723UL7.js";export{o as Privacy};
