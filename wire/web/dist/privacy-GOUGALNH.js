import{a as o}from"./chunk-MV2W7YHM.js";import"./chunk-MKSVHBFJ.js";import"./chunk-ZGBGCCYL.js";import"./chunk-UIWQWYHT.js";export{o as Privacy};
