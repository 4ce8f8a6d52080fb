import{a as o}from"./chunk-LLCWYP7S.js";import"./chunk-WEKBKF6O.js";import"./chunk-HYVOHVC7.js";import"./chunk-MMWV4INU.js";export{o as Privacy};
