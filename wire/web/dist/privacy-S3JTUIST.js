import{a as o}from"./chunk-SLPQ5K4Q.js";import"./chunk-BPNQFZH4.js";import"./chunk-ZNO2NVBG.js";import"./chunk-V6YQS35U.js";export{o as Privacy};
